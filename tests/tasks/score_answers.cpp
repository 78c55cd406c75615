// score_answers: scores for compare_answers.py. Reads a JSON object a line from stdin: {"actual":
// [["B-PER", ...], ...], "predicted": [...]} has the tags of texts, {"right": ["a text", ...],
// "answer": "another"} an answer and the right ones. Writes an object of scores for each.

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "src/tasks/answer_text.h"
#include "src/tasks/entities.h"

namespace {

using nlohmann::json;

json score_tags(const json& request) {
  const auto views = [](const json& tags) {
    std::vector<std::string_view> views;
    for (const json& tag : tags)
      views.push_back(tag.get_ref<const std::string&>());
    return views;
  };
  ferry::EntityScores scores;
  for (size_t i = 0; i < request["actual"].size(); ++i)
    scores.add(views(request["actual"][i]), views(request["predicted"][i]));
  return {{"precision", scores.precision()},
          {"recall", scores.recall()},
          {"f1", scores.f1()},
          {"accuracy", scores.accuracy()}};
}

json score_answer(const json& request) {
  const auto answer = request["answer"].get<std::string>();
  double exact = 0, f1 = 0;
  for (const json& text : request["right"]) {
    const auto& right = text.get_ref<const std::string&>();
    exact = std::max(exact, ferry::is_exact_match(right, answer) ? 1.0 : 0.0);
    f1 = std::max(f1, ferry::word_f1(right, answer));
  }
  return {{"exact_match", exact}, {"f1", f1}};
}

}  // namespace

int main() {
  std::string line;
  while (std::getline(std::cin, line)) {
    const json request = json::parse(line);
    std::cout << (request.contains("answer") ? score_answer(request) : score_tags(request)).dump()
              << '\n';
  }
}
