#pragma once
// What a task makes of examples: samples, a micro-batch with labels, scores.

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "src/tasks/task.h"
#include "tests/text/model_files.h"

namespace ferry::test {

/** A BERT's tokenizer of a few words. */
inline Tokenizer small_tokenizer() {
  TemporaryDirectory directory;
  directory.write("tokenizer.json", small_model().dump());
  return Tokenizer::open(directory.path());
}

inline LabelScheme classes(ProblemType problem, std::vector<std::string> names) {
  return {.problem = problem, .labels = LabelMap(std::move(names)), .has_pairs = false};
}

/** What a task makes of a dataset. */
struct Made {
  Tokenizer tokenizer = small_tokenizer();
  std::shared_ptr<const Task> task;
  Dataset dataset;
  TokenizedDataset data;
  MicroBatch batch;

  Made(std::string_view kind,
       LabelScheme scheme,
       std::vector<Example> examples,
       const TaskSettings& settings = {},
       int64_t max_length = 8)
      : task(task_kind(kind).make(scheme, settings)) {
    dataset = {.examples = std::move(examples), .scheme = std::move(scheme)};
    data = tokenize_dataset(dataset, [&](const Example& example, auto& out) {
      task->encode(example, tokenizer, max_length, out);
    });
    std::vector<int64_t> all(static_cast<size_t>(data.size()));
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = static_cast<int64_t>(i);
    batch = collate(data, all, std::vector<int64_t>{64}, 0);
    task->label(batch, data, tokenizer, {.seed = 1});
  }

  Made(const Made&) = delete;  // scorers point into it
  Made& operator=(const Made&) = delete;

  std::unique_ptr<Scorer> scorer() const { return task->scorer(data, tokenizer); }
};

inline double metric(const Metrics& metrics, std::string_view name) {
  for (const auto& [known, value] : metrics)
    if (known == name) return value;
  ADD_FAILURE() << "no metric " << name;
  return 0;
}

/** The answers that a scorer gives to the outputs of the whole batch, one output a row. */
inline std::vector<Answer> answers_to(Scorer& scorer,
                                      const Made& made,
                                      const std::vector<float>& logits) {
  std::vector<Answer> answers;
  const TakeAnswer take = [&](Answer answer) { answers.push_back(std::move(answer)); };
  scorer.add(made.batch, logits, take);
  scorer.finish(take);
  return answers;
}

}  // namespace ferry::test
