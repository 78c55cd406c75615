#include "src/train/generate/token_text.h"

#include <algorithm>

namespace ferry {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // for bytes that are no character (yet)
/** More tokens than a character takes, in any vocabulary. */
constexpr size_t kWaitingTokens_max = 8;

/** Bytes at the end of the text that a stop string may begin with. */
size_t begun_stop(std::string_view text, const std::vector<std::string>& stops) {
  size_t most = 0;
  for (const std::string& stop : stops)
    for (size_t n = std::min(stop.size() - 1, text.size()); n > most; --n)
      if (text.ends_with(std::string_view(stop).substr(0, n))) most = n;
  return most;
}

}  // namespace

TokenText::TokenText(const Tokenizer& tokenizer,
                     std::span<const int32_t> prompt,
                     std::vector<std::string> stops)
    : tokenizer_(tokenizer), stops_(std::move(stops)) {
  constexpr size_t kPromptTokens = 6;
  const auto last = prompt.last(std::min(prompt.size(), kPromptTokens));
  window_.assign(last.begin(), last.end());
  window_text_ = tokenizer_.decode(window_);
  n_settled_ = window_.size();
}

std::string TokenText::add(int32_t id) {
  if (is_stopped_) return {};
  window_.push_back(id);
  const std::string all = tokenizer_.decode(window_);
  const bool is_whole = !all.ends_with(kReplacement);
  if (!is_whole && window_.size() - n_settled_ < kWaitingTokens_max) return {};
  waiting_ += all.substr(std::min(window_text_.size(), all.size()));
  window_.erase(window_.begin(), window_.begin() + static_cast<std::ptrdiff_t>(n_settled_));
  window_text_ = tokenizer_.decode(window_);
  n_settled_ = window_.size();
  size_t end = waiting_.npos;
  for (const std::string& stop : stops_)
    end = std::min(end, waiting_.find(stop));
  is_stopped_ = end != waiting_.npos;
  return give(is_stopped_ ? end : waiting_.size() - begun_stop(waiting_, stops_));
}

std::string TokenText::finish() {
  if (is_stopped_) return {};
  if (window_.size() > n_settled_) {
    const std::string all = tokenizer_.decode(window_);
    waiting_ += all.substr(std::min(window_text_.size(), all.size()));
    window_.clear();
    window_text_.clear();
    n_settled_ = 0;
  }
  return give(waiting_.size());
}

std::string TokenText::give(size_t end) {
  std::string given = waiting_.substr(0, end);
  waiting_.erase(0, end);
  text_ += given;
  return given;
}

}  // namespace ferry
