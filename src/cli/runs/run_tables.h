#pragma once
// `ferry runs ls` and `ferry runs show`: runs as tables that fit 80 columns, and as JSON.

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace ferry::cli {

/** All known runs by the directory they are in; those of `directory` where that is not empty. */
void list_runs(const std::filesystem::path& directory, bool wants_json);
void show_run(const std::filesystem::path& run, bool wants_json);

/** A number of a line of metrics.jsonl, or "-". */
std::string number_text(const nlohmann::ordered_json& line, const char* key, std::string_view form);
void print_run_json(const nlohmann::ordered_json& value);

}  // namespace ferry::cli
