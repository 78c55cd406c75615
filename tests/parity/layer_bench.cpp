// Times forward and backward of a BERT on the CPU, without the engine around it: the embeddings, L
// layers and a classifier on one micro-batch of equal sequences, dropout on, fp32.
// tests/parity/layer_bench.py runs it beside transformers.
//
//   layer_bench SEQUENCES LENGTH WIDTH HEADS INTERMEDIATE LAYERS VOCABULARY STEPS
//
// Prints the milliseconds of each step, one a line, after two steps of warm-up.

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "models/bert/bert_table.h"
#include "tests/models/model_runner.h"

int main(int argc, char** argv) {
  using namespace ferry;
  if (argc != 9) {
    std::cerr << "usage: layer_bench SEQUENCES LENGTH WIDTH HEADS INTERMEDIATE LAYERS VOCABULARY "
                 "STEPS\n";
    return 2;
  }
  const auto number = [&](int i) { return static_cast<int64_t>(std::atoll(argv[i])); };
  BertConfig config;
  config.hidden_size = number(3);
  config.num_attention_heads = number(4);
  config.intermediate_size = number(5);
  config.num_hidden_layers = number(6);
  config.vocab_size = number(7);
  config.max_position_embeddings = number(2);
  test::TestBatch batch(std::vector<int64_t>(static_cast<size_t>(number(1)), number(2)), 0,
                        config.vocab_size, 1);
  batch.tensors.labels = at::zeros({number(1)}, at::TensorOptions().dtype(at::kInt));
  batch.tensors.loss_weight = 1.0f / static_cast<float>(number(1));
  test::ModelRunner runner(make_bert_table(config, {}), LossKind::cross_entropy,
                           batch.tensors.shape);
  runner.randomise(1, 0.02f);
  RandomKey key = {.training = true, .seed = 1};
  for (int64_t step = -2; step < number(8); step++) {
    key.step = step;
    const auto begin = std::chrono::steady_clock::now();
    runner.forward(key, batch.tensors);
    const auto middle = std::chrono::steady_clock::now();
    runner.backward(key, batch.tensors);
    const auto end = std::chrono::steady_clock::now();
    const auto ms = [](auto from, auto to) {
      return std::chrono::duration<double, std::milli>(to - from).count();
    };
    if (step >= 0) std::printf("%.3f %.3f\n", ms(begin, middle), ms(middle, end));
  }
  return 0;
}
