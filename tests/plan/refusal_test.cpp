// What is said of a model that does not fit: what is missing, and changes with which it would fit.

#include <gtest/gtest.h>

#include <optional>
#include <regex>
#include <string>
#include <vector>

#include "tests/plan/requests.h"

namespace ferry {
namespace {

using test::bert_large, test::largest_bert, test::refusal, test::request, test::request_on_cpu;

/** The value that `text` gives an option; `text` is one piece of advice. */
std::optional<int64_t> number_in(const std::string& text, const std::string& key) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("(^|[ ,])" + key + " = ([0-9]+)")))
    return std::nullopt;
  return std::stoll(found[2]);
}

/** The request changed as one piece of advice says. */
PlanRequest changed_by(const std::string& advice, PlanRequest r) {
  if (auto length = number_in(advice, "max_length")) r.max_length = *length;
  if (auto size = number_in(advice, "train_batch_size")) r.train_batch_size = *size;
  if (auto size = number_in(advice, "per_device_train_batch_size")) {
    r.micro_batch_size = *size;
    r.train_batch_size = *size * number_in(advice, "gradient_accumulation_steps").value_or(1);
  }
  if (auto slots = number_in(advice, "slots")) r.n_weight_slots = static_cast<int>(*slots);
  if (advice.find("without placement") != std::string::npos) r.placement.reset();
  if (advice.find("without activations") != std::string::npos) r.activations.reset();
  if (advice.find("without boundaries") != std::string::npos) r.boundaries.reset();
  if (advice.find("without accumulation_order") != std::string::npos) r.order.reset();
  if (advice.find("with activations = host") != std::string::npos)
    r.activations = Activations::host;
  if (advice.find("optim = adamw_8bit") != std::string::npos) r.states = simd::StateType::block8;
  if (advice.find("master = split") != std::string::npos) r.split_master = true;
  return r;
}

/** What a refusal advises, piece by piece. */
std::vector<std::string> advice_in(const std::string& message) {
  constexpr std::string_view kFits = " - it fits ", kOr = ", or ";
  std::vector<std::string> pieces;
  size_t at = message.find(kFits);
  if (at == std::string::npos) return pieces;
  for (at += kFits.size(); at < message.size();) {
    const size_t end = std::min(message.find(kOr, at), message.size());
    pieces.push_back(message.substr(at, end - at));
    at = end + kOr.size();
  }
  return pieces;
}

TEST(Refusal, WhatDoesNotFitNamesTheLargestTagAndAChange) {
  PlanRequest r = request(1 * kGiB);
  r.placement = Place::gpu;
  try {
    make_plan(bert_large(DType::bf16), r);
    FAIL() << "335 M parameters in 1 GiB";
  } catch (const Error& e) {
    EXPECT_EQ(e.exit_code(), 3);
    EXPECT_NE(std::string(e.what()).find("largest: "), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("placement"), std::string::npos) << e.what();
  }
}

/** Requests of every kind around what BERT-large takes. */
std::vector<PlanRequest> tight_requests() {
  std::vector<PlanRequest> requests;
  for (int64_t mib : {320, 500, 800, 1200, 2000})
    for (bool has_gpu : {true, false})
      for (bool trains : {true, false})
        for (int64_t micro : {0, 32, 24})
          for (bool has_wishes : {true, false}) {
            PlanRequest r = has_gpu ? request(mib * kMiB) : request_on_cpu(4 * mib * kMiB);
            r.trains = trains;
            if (micro != 0) r.micro_batch_size = micro;
            if (micro != 0 && !trains) r.train_batch_size = micro;
            if (has_wishes) {
              r.placement = mib % 800 == 0 ? Place::host : Place::gpu;
              r.activations = Activations::keep;
              r.boundaries = Place::gpu;
              r.order = AccumulationOrder::vertical;
            }
            requests.push_back(r);
          }
  return requests;
}

TEST(Refusal, WhatARefusalAdvisesFits) {
  const ModelTable model = bert_large(DType::bf16);
  int n_advised = 0;
  for (const PlanRequest& r : tight_requests()) {
    const std::string message = refusal(model, r);
    for (const std::string& advice : advice_in(message)) {
      ++n_advised;
      const PlanRequest changed = changed_by(advice, r);
      EXPECT_TRUE(!r.trains || changed.train_batch_size == r.train_batch_size) << message;
      EXPECT_EQ(refusal(model, changed), "") << message;
    }
  }
  EXPECT_GT(n_advised, 40);
}

/** What a refusal says that an option must be at least, in bytes. */
int64_t least_in(const std::string& message, const std::string& option) {
  std::smatch found;
  if (!std::regex_search(message, found,
                         std::regex("(at least|nearest is) .*?" + option + " = ([0-9.]+[MG]iB)")))
    return 0;
  return parse_bytes(found[2].str()).value();
}

TEST(Refusal, ARefusalSaysTheLeastWhereNothingFits) {
  const ModelTable model = bert_large(DType::bf16);
  for (bool has_gpu : {false, true})
    for (std::optional<Activations> wish :
         {std::optional<Activations>(), std::optional(Activations::keep)}) {
      PlanRequest r = has_gpu ? request(100 * kMiB) : request_on_cpu(100 * kMiB);
      r.activations = wish;
      r.host_reserved_bytes = 50 * kMiB;
      r.gpu_reserved_bytes = 70 * kMiB;
      const std::string message = refusal(model, r);
      EXPECT_TRUE(advice_in(message).empty()) << message;
      EXPECT_FALSE(message.find("without activations") != std::string::npos &&
                   message.find("with activations") != std::string::npos)
          << message;
      PlanRequest least = changed_by(message, r);
      least.host_budget_bytes = least_in(message, "host_memory") - r.host_reserved_bytes;
      if (has_gpu) least.gpu_budget_bytes = least_in(message, "gpu_memory") - r.gpu_reserved_bytes;
      EXPECT_EQ(refusal(model, least), "") << message;
      // It is told in steps of 1 MiB, of 0.1 GiB above 10 GiB.
      (has_gpu ? least.gpu_budget_bytes : least.host_budget_bytes) -= has_gpu ? 2 * kMiB : kGiB / 5;
      EXPECT_NE(refusal(model, least), "") << message;
    }
}

TEST(Refusal, WhatItSaysOfTheHostIsEnoughForTheGpuThatThereIs) {
  const ModelTable model = bert_large(DType::bf16);
  PlanRequest r = request(2 * kGiB);
  r.host_budget_bytes = 100 * kMiB;
  r.host_reserved_bytes = 70 * kMiB;
  const std::string message = refusal(model, r);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(
      message, found,
      std::regex("with this GPU memory host_memory = ([0-9.]+[MG]iB) would do with optim = "
                 "adamw_8bit, master = split; ")))
      << message;
  r.states = simd::StateType::block8;
  r.split_master = true;
  r.host_budget_bytes = parse_bytes(found[1].str()).value() - r.host_reserved_bytes;
  EXPECT_EQ(refusal(model, r), "") << message;
}

TEST(Refusal, ARefusalNamesReducedStatesWhereTheyHelp) {
  const ModelTable model = bert_large(DType::bf16);
  PlanRequest r = request_on_cpu(3584 * kMiB);  // 14 bytes a parameter with fp32 states: 4.4 GiB
  r.train_batch_size = 1;
  r.max_length = 64;
  const std::string message = refusal(model, r);
  EXPECT_NE(message.find("it fits with optim = adamw_8bit"), std::string::npos) << message;
  r.states = simd::StateType::block8;
  EXPECT_EQ(refusal(model, r), "");
  // What a run has already is no advice, and one that trains nothing has no states.
  r.split_master = true;
  r.host_budget_bytes = 512 * kMiB;
  EXPECT_EQ(refusal(model, r).find("adamw_8bit"), std::string::npos) << refusal(model, r);
  PlanRequest evaluation = request_on_cpu(256 * kMiB);
  evaluation.trains = false;
  EXPECT_EQ(refusal(model, evaluation).find("optim"), std::string::npos);
}

TEST(Refusal, TheLargestNumbersNeitherFitNorOverflow) {
  for (AttentionBackend attention :
       {AttentionBackend::cpu_math, AttentionBackend::flash, AttentionBackend::memory_efficient}) {
    const ModelTable model = largest_bert(attention);
    // Texts at once (0: the planner chooses), and their length.
    for (auto [micro, max_length] :
         {std::pair<int64_t, int64_t>(0, 64), {1 << 13, 1 << 18}, {1 << 20, 64}}) {
      PlanRequest r = attention == AttentionBackend::cpu_math ? request_on_cpu(1024 * kGiB)
                                                              : request(1024 * kGiB);
      r.train_batch_size = micro != 0 ? micro : 1 << 20;
      if (micro != 0) r.micro_batch_size = micro;
      r.max_length = max_length;
      const std::string message = refusal(model, r);
      EXPECT_NE(message, "") << micro << " of " << max_length;
      EXPECT_FALSE(std::regex_search(message, std::regex("-[0-9]"))) << message;
    }
  }
}

TEST(Refusal, ManyMicroBatchesAreRefusedBeforeTheyAreLaidOut) {
  PlanRequest r = request_on_cpu(INT64_MAX);
  r.train_batch_size = 1 << 20;
  r.micro_batch_size = 1;
  r.order = AccumulationOrder::vertical;  // a region for each block and micro-batch
  try {
    make_plan(largest_bert(AttentionBackend::cpu_math), r);
    ADD_FAILURE() << "2^20 micro-batches through 1026 blocks";
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::usage);
    EXPECT_NE(std::string(error.what()).find("at most 194"), std::string::npos) << error.what();
  }
}

TEST(Refusal, NamesTheLargestTagOfThePlaceThatIsTooSmall) {
  PlanRequest r = request(200 * kMiB);
  r.placement = Place::host;
  try {
    make_plan(bert_large(DType::bf16), r);
    ADD_FAILURE() << "200 MiB of GPU memory were enough";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("on the gpu"), std::string::npos) << e.what();
  }
  r = request(24 * kGiB);
  r.host_budget_bytes = 100 * kMiB;
  r.placement = Place::host;
  try {
    make_plan(bert_large(DType::bf16), r);
    ADD_FAILURE() << "100 MiB of host memory were enough";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("on the host"), std::string::npos) << e.what();
  }
}

TEST(Refusal, RefusesMoreMicroBatchesThanADeviceCanFollow) {
  PlanRequest r = request(24 * kGiB);
  r.train_batch_size = 100'000;
  r.micro_batch_size = 1;
  EXPECT_THROW(make_plan(bert_large(DType::bf16), r), Error);
}

}  // namespace
}  // namespace ferry
