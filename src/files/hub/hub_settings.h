#pragma once
// What the environment says of the hub: the variables of Hugging Face's own client, with the same
// meanings. Read by whoever looks into its cache or fetches; nothing here asks the network.

#include <chrono>
#include <filesystem>
#include <string>

namespace ferry::hub {

struct HubSettings {
  std::string endpoint = "https://huggingface.co";  ///< without a slash at its end
  std::filesystem::path cache;                      ///< empty: there is no home
  std::string token;                                ///< empty: nobody is logged in
  std::string token_origin;                         ///< the variable or the file that has it
  bool is_offline = false;
  bool makes_links = true;  ///< false: files lie in snapshots/ themselves
  int connect_timeout_s = 10, stall_timeout_s = 30;
  std::chrono::milliseconds retry_wait{1000};  ///< the first; each further one is twice as long
};

/** $HF_HUB_CACHE, else $HF_HOME/hub, else $XDG_CACHE_HOME/huggingface/hub, else
 * ~/.cache/huggingface/hub. Empty where there is no home. */
std::filesystem::path cache_directory();

/** HF_ENDPOINT, HF_TOKEN, HF_TOKEN_PATH, HF_HUB_OFFLINE, HF_HUB_CACHE, HF_HOME and their kin.
 * Throws Error(usage) where a value cannot be. */
HubSettings settings_of_environment();

}  // namespace ferry::hub
