#pragma once
// Words as exec and posix_spawn take them.

#include <string>
#include <vector>

namespace ferry {

/** Pointers into the words, which outlive them, and a null pointer behind them. */
inline std::vector<char*> argument_pointers(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  pointers.reserve(words.size() + 1);
  for (std::string& word : words)
    pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace ferry
