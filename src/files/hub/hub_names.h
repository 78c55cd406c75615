#pragma once
// Names of repositories, revisions and files on a hub. All of them come from users or from a server
// and become paths and URLs, so they are judged here before anything is done with them.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ferry::hub {

enum class RepoKind : uint8_t { model, dataset };

struct RepoName {
  RepoKind kind = RepoKind::model;
  std::string id;  ///< "organisation/name"; the oldest have no organisation
  std::string revision = "main";

  /** "organisation/name@revision", without the revision where it is main. */
  std::string text() const;
};

/** A name as hubs allow it: "name" or "organisation/name". */
bool is_repo_id(std::string_view text);
/** "id" or "id@revision"; nullopt where the text cannot be one. */
std::optional<RepoName> parse_repo_name(RepoKind kind, std::string_view text);
/** A name of a commit: 40 hexadecimal digits. */
bool is_commit(std::string_view revision);
/** A relative path that stays below where it begins, on any system. */
bool is_safe_path(std::string_view path);
/** A part of a URL. `keeps_slashes`: several parts. */
std::string encoded(std::string_view text, bool keeps_slashes = false);

}  // namespace ferry::hub
