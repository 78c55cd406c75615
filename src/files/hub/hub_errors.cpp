#include "src/files/hub/hub_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "src/base/error.h"
#include "src/base/json/json_reader.h"

namespace ferry::hub {
namespace {

constexpr int kTries_max = 5;

/** The number behind "key=" in a header such as `"api";r=0;t=12`. */
std::optional<int64_t> number_in(const std::string& header, const std::string& key) {
  size_t at = 0;
  while ((at = header.find(key + "=", at)) != std::string::npos) {
    if (at == 0 || header[at - 1] == ';' || header[at - 1] == ' ') break;
    ++at;
  }
  if (at == std::string::npos) return std::nullopt;
  int64_t value = 0;
  const char* const begin = header.data() + at + key.size() + 1;
  const auto [end, fault] = std::from_chars(begin, header.data() + header.size(), value);
  return fault == std::errc() && end != begin ? std::optional(value) : std::nullopt;
}

/** What the hub itself says: X-Error-Message, else `{"error": ...}` of the body. */
std::string reason_of(const HttpAnswer& answer) {
  constexpr size_t kLongest = 500;
  std::string reason = answer.header("x-error-message");
  nlohmann::ordered_json body;
  if (reason.empty() && !answer.body.empty() && !parse_json(answer.body, body) &&
      body.is_object()) {
    const auto error = body.find("error");
    if (error != body.end() && error->is_string()) reason = error->get<std::string>();
    if (error != body.end() && error->is_array())
      for (const auto& one : *error)
        if (one.is_string()) reason += (reason.empty() ? "" : "; ") + one.get<std::string>();
    const auto errors = body.find("errors");
    if (reason.empty() && errors != body.end() && errors->is_array() && !errors->empty() &&
        errors->front().is_object())
      reason = errors->front().value("message", "");
  }
  if (reason.size() > kLongest) reason.resize(kLongest);
  return reason;
}

std::string in_brackets(const std::string& text) {
  return text.empty() ? "" : fmt::format(" ({})", text);
}

/** "model 'a/b'" */
std::string repo_text(const RepoName& repo) {
  return fmt::format("{} '{}'", repo.kind == RepoKind::model ? "model" : "data set", repo.id);
}

std::string page_of(const Asked& asked) {
  return fmt::format("{}/{}{}", asked.settings.endpoint,
                     asked.repo.kind == RepoKind::dataset ? "datasets/" : "", asked.repo.id);
}

constexpr std::string_view kLogIn = "set HF_TOKEN, or log in (hf auth login)";

Error no_repository(const HttpAnswer& answer, const Asked& asked) {
  const auto& [settings, repo, file] = asked;
  const std::string what =
      fmt::format("no {} at {}, or a private one", repo_text(repo), settings.endpoint);
  if (answer.has_sent_token)
    return Error(Fault::data, "hub.fetch",
                 fmt::format("{} that the token of {} may not see", what, settings.token_origin),
                 "check the name; for a private one take a token of an account that may read it");
  return Error(Fault::data, "hub.fetch", what,
               fmt::format("check the name; for a private one {}", kLogIn));
}

}  // namespace

void throw_no_hub(const Asked& asked, const std::string& what) {
  throw Error(Fault::machine, "hub.fetch",
              fmt::format("{} does not answer as a hub does: {}", asked.settings.endpoint, what),
              "does a proxy or a login page stand between? Check HF_ENDPOINT and the network");
}

void throw_refusal(const HttpAnswer& answer, const Asked& asked) {
  const auto& [settings, repo, file] = asked;
  const std::string code = answer.header("x-error-code"), reason = reason_of(answer);
  const std::string id = answer.header("x-request-id");
  const std::string asked_as = id.empty() ? "" : fmt::format(", request {}", id);
  const auto has = [&](std::string_view words) { return reason.find(words) != std::string::npos; };
  const auto fail = [&](Fault fault, const std::string& what, const std::string& hint) {
    throw Error(fault, "hub.fetch", what, hint);
  };
  if (answer.status == 0)
    fail(Fault::machine, fmt::format("{} could not be asked: {}", settings.endpoint, answer.fault),
         "check the network and HF_ENDPOINT, then give the same command: it goes on where it "
         "stopped; HF_HUB_OFFLINE=1 takes what is here already");
  if (has("Invalid credentials") || has("Invalid username or password"))
    fail(Fault::data, fmt::format("the hub does not know the token of {}", settings.token_origin),
         "log in again (hf auth login), or take it away: public repositories need none");
  if (has("Access to this resource is disabled"))
    fail(Fault::data, fmt::format("the hub has disabled the {}", repo_text(repo)),
         fmt::format("see {}", page_of(asked)));
  if (code == "GatedRepo")
    fail(Fault::data, fmt::format("the {} is gated{}", repo_text(repo), in_brackets(reason)),
         answer.has_sent_token
             ? fmt::format("ask for access at {} with the account of the token of {}",
                           page_of(asked), settings.token_origin)
             : fmt::format("accept its licence at {}, then {}", page_of(asked), kLogIn));
  if (code == "RevisionNotFound")
    fail(Fault::data, fmt::format("the {} has no revision '{}'", repo_text(repo), repo.revision),
         "give a branch, a tag or a commit behind the @, or leave it out for main");
  if (code == "EntryNotFound")
    fail(Fault::data, fmt::format("'{}' has no file '{}'", repo.text(), file),
         fmt::format("see {}", page_of(asked)));
  if (code == "RepoNotFound" || answer.status == 401 || (answer.status == 404 && file.empty()))
    throw no_repository(answer, asked);
  if (answer.status == 404)
    fail(Fault::data, fmt::format("'{}' has no file '{}'", repo.text(), file),
         fmt::format("see {}", page_of(asked)));
  if (answer.status == 403)
    fail(Fault::data,
         fmt::format("the hub refuses the {}{}{}", repo_text(repo), in_brackets(reason), asked_as),
         settings.token.empty()
             ? std::string(kLogIn)
             : fmt::format("give the token of {} the right to read it", settings.token_origin));
  if (answer.status == 429)
    fail(Fault::machine, fmt::format("the hub was asked too often{}", in_brackets(reason)),
         settings.token.empty()
             ? fmt::format("try again in five minutes, or {}: accounts may ask more often", kLogIn)
             : "try again in five minutes: it goes on where it stopped");
  fail(Fault::machine,
       fmt::format("the hub answers {} for {}{}{}", answer.status,
                   file.empty() ? repo.text() : file, in_brackets(reason), asked_as),
       "try again later: it goes on where it stopped");
  throw;  // not reached
}

std::optional<std::chrono::milliseconds> Retries::wait_after(const HttpAnswer& answer) {
  constexpr int kAgain[] = {0, 408, 429, 500, 502, 503, 504};
  if (std::ranges::find(kAgain, answer.status) == std::end(kAgain)) return std::nullopt;
  if (n_ == kTries_max || answer.is_hopeless) return std::nullopt;
  // Who has no network is told at once; a download that was under way waits for it.
  if (answer.is_unreachable && !has_come_ && n_ > 0) return std::nullopt;
  constexpr int kDoublings_max = 3;
  const auto wait = settings_.retry_wait * (1 << std::min(n_, kDoublings_max));
  ++n_;
  if (answer.status != 429) return wait;
  constexpr int64_t kLongest_s = 600;
  const std::string limit = answer.header("ratelimit");
  if (number_in(limit, "r") == 0)
    if (const auto seconds = number_in(limit, "t"); seconds && *seconds >= 0)
      return std::chrono::seconds(std::min(*seconds, kLongest_s) + 1);
  int64_t seconds = 0;
  const std::string after = answer.header("retry-after");
  if (!after.empty() &&
      std::from_chars(after.data(), after.data() + after.size(), seconds).ec == std::errc() &&
      seconds >= 0)
    return std::chrono::seconds(std::min(seconds, kLongest_s));
  return wait;
}

}  // namespace ferry::hub
