// Messages about a model that does not fit: what is missing, and changes with which it would fit.

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "tests/plan/requests.h"
#include "tests/plan/search/even_plans.h"

namespace ferry {
namespace {

using test::bert, test::bert_large, test::even_machine, test::largest_bert, test::refusal,
    test::request, test::request_on_cpu;

/** The value that `text` gives an option; `text` is one piece of advice. */
std::optional<int64_t> number_in(const std::string& text, const std::string& key) {
  std::smatch found;
  if (!std::regex_search(text, found, std::regex("(^|[ ,])" + key + " = ([0-9]+)")))
    return std::nullopt;
  return std::stoll(found[2]);
}

/** The same of gpu_memory or host_memory, in bytes. */
std::optional<int64_t> memory_in(const std::string& text, Place memory) {
  std::smatch found;
  const std::string key(budget_option_of(memory));
  if (!std::regex_search(text, found, std::regex(key + " = ([0-9.]+[MG]iB)"))) return std::nullopt;
  return parse_bytes(found[1].str());
}

constexpr Place kMemories[] = {Place::device, Place::host};

/** As gpu_memory or host_memory of so many bytes has it. */
PlanRequest with_memory(PlanRequest r, Place memory, int64_t n_bytes) {
  if (memory == Place::device)
    r.gpu_budget_bytes = std::max<int64_t>(0, n_bytes - r.gpu_reserved_bytes);
  else
    r.host_budget_bytes = std::max<int64_t>(0, n_bytes - r.host_reserved_bytes);
  return r;
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
  std::smatch left_out;
  if (std::regex_search(advice, left_out, std::regex("without (.*?)( and |$)"))) {
    const std::string options = left_out[1];
    const auto names = [&](const char* key) { return options.find(key) != std::string::npos; };
    if (names("placement")) r.placement.reset();
    if (names("activations")) r.activations.reset();
    if (names("layer_inputs")) r.layer_inputs.reset();
    if (names("accumulation_order")) r.order.reset();
  }
  if (advice.find("activations = host") != std::string::npos) r.activations = Activations::host;
  if (advice.find("optim = adamw_8bit") != std::string::npos) r.optim = simd::Optim::adamw_8bit;
  if (advice.find("master = split") != std::string::npos) r.split_master = true;
  if (advice.find("nvme_path = DIR") != std::string::npos) r.has_nvme = true;
  for (Place memory : kMemories)
    if (auto n_bytes = memory_in(advice, memory)) r = with_memory(r, memory, *n_bytes);
  return r;
}

/** The advice in a refusal, piece by piece. */
std::vector<std::string> advice_in(const std::string& message) {
  constexpr std::string_view kFits = " - it fits ", kOr = ", or ";
  std::vector<std::string> pieces;
  size_t at = message.find(kFits);
  if (at == std::string::npos) return pieces;
  const size_t last = std::min(message.find("; else", at), message.size());
  for (at += kFits.size(); at < last;) {
    const size_t end = std::min(message.find(kOr, at), last);
    pieces.push_back(message.substr(at, end - at));
    at = end + kOr.size();
  }
  return pieces;
}

/** True if a piece of advice says nothing but more memory. */
bool is_more_memory(const std::string& advice) {
  return advice.starts_with("with at least ");
}

/** True if a piece of advice leaves what is computed as it is. */
bool leaves_results(const std::string& advice) {
  return !std::regex_search(advice, std::regex("max_length|batch_size|optim|master"));
}

TEST(Refusal, WhatDoesNotFitNamesTheLargestTagAndAChange) {
  PlanRequest r = request(1 * kGiB);
  r.placement = Place::device;
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
              r.placement = mib % 800 == 0 ? Place::host : Place::device;
              r.activations = Activations::keep;
              r.layer_inputs = Place::device;
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

/** Requests for which one memory is too small, the other, or both, with what a process takes
 * besides. */
std::vector<PlanRequest> starved_requests(const std::vector<std::pair<int64_t, int64_t>>& mib) {
  std::vector<PlanRequest> requests;
  for (auto [gpu_mib, host_mib] : mib)
    for (bool reduces : {false, true})
      for (bool knows_times : {false, true}) {
        PlanRequest r = gpu_mib > 0 ? request(0) : request_on_cpu(0);
        r.gpu_reserved_bytes = 688 * kMiB;
        r.host_reserved_bytes = 784 * kMiB;
        r = with_memory(with_memory(r, Place::device, gpu_mib * kMiB), Place::host,
                        host_mib * kMiB);
        if (reduces) r.optim = simd::Optim::adamw_8bit;
        if (reduces) r.split_master = r.has_gpu;
        if (knows_times) r.machine = even_machine({});
        if (knows_times) r.machine->host.memory_bytes = 0;  // as a card's profile has it
        requests.push_back(r);
      }
  return requests;
}

/** MiniLM's shape. */
ModelTable small_bert() {
  return bert(384, 6, HeadKind::classification, /*vocab_size=*/30522);
}

/** The first piece of advice is memory; it is enough, and 5 % less of any is not. */
void expect_least_memory(const ModelTable& model, const PlanRequest& r) {
  const std::string message = refusal(model, r);
  const std::vector<std::string> pieces = advice_in(message);
  ASSERT_FALSE(pieces.empty()) << message;
  EXPECT_TRUE(is_more_memory(pieces.front())) << message;
  for (const std::string& piece : pieces) {
    const PlanRequest more = changed_by(piece, r);
    EXPECT_EQ(refusal(model, more), "") << piece << " of " << message;
    for (Place memory : kMemories)
      if (auto n_bytes = memory_in(piece, memory)) {
        const PlanRequest less = with_memory(more, memory, *n_bytes / 20 * 19);
        EXPECT_NE(refusal(model, less), "") << piece << " of " << message;
      }
  }
}

TEST(Refusal, SaysTheLeastMemoryOfASmallModel) {
  for (const PlanRequest& r :
       starved_requests({{11264, 200}, {700, 22528}, {100, 22528}, {700, 200}, {0, 800}}))
    expect_least_memory(small_bert(), r);
}

TEST(Refusal, SaysTheLeastMemoryOfALargeModel) {
  for (const PlanRequest& r : starved_requests(
           {{11264, 700}, {2048, 2048}, {900, 65536}, {900, 1024}, {3072, 200}, {0, 1024}}))
    expect_least_memory(bert_large(DType::bf16), r);
}

TEST(Refusal, SaysTheLeastMemoryOfAModelOf13G) {
  for (const PlanRequest& r : starved_requests({{11264, 32768}, {2048, 32768}}))
    expect_least_memory(bert(5120, 40), r);
}

TEST(Refusal, SaysTheLeastMemoryForWishes) {
  const ModelTable model = bert_large(DType::bf16);
  for (PlanRequest r : starved_requests({{1500, 65536}, {3072, 1500}, {0, 1500}})) {
    r.micro_batch_size = 32;
    r.activations = Activations::recompute;
    expect_least_memory(model, r);
    const PlanRequest more = changed_by(advice_in(refusal(model, r)).front(), r);
    EXPECT_EQ(make_plan(model, more).micro_batch_size, 32);
  }
}

TEST(Refusal, SmallerMicroBatchesAreNamedBesideMemoryWhereItIsLess) {
  for (PlanRequest r : starved_requests({{0, 784}})) {
    r.micro_batch_size = 32;
    const std::string message = refusal(small_bert(), r);
    EXPECT_NE(message.find(", or with per_device_train_batch_size = 1, gradient_accumulation_steps "
                           "= 32 and at least host_memory = "),
              std::string::npos)
        << message;
    expect_least_memory(small_bert(), r);
  }
}

TEST(Refusal, WhatLeavesTheResultsComesFirst) {
  const ModelTable model = bert_large(DType::bf16);
  int n_both = 0;
  for (const PlanRequest& r : tight_requests()) {
    const std::string message = refusal(model, r);
    const std::vector<std::string> pieces = advice_in(message);
    EXPECT_TRUE(std::ranges::is_partitioned(pieces, leaves_results)) << message;
    if (message.empty()) continue;
    EXPECT_TRUE(std::ranges::any_of(pieces, is_more_memory)) << message;
    n_both += !std::ranges::all_of(pieces, leaves_results);
  }
  EXPECT_GT(n_both, 10);
}

TEST(Refusal, MemoryThatNeedsNoReducedStatesNamesNone) {
  for (const PlanRequest& r : starved_requests({{11264, 200}})) {
    EXPECT_EQ(advice_in(refusal(small_bert(), r)).size(), 1u) << refusal(small_bert(), r);
    EXPECT_EQ(advice_in(refusal(bert_large(DType::bf16), r)).size(), 1u);
  }
}

TEST(Refusal, MoreThanTheMachineHasIsNoAdvice) {
  PlanRequest r = request(11 * kGiB);
  r.machine = even_machine({});
  r.machine->gpu->memory_bytes = 12 * kGiB;
  r.machine->host.memory_bytes = 3 * kGiB;
  r.host_budget_bytes = 10 * kMiB;
  const std::string with_less = refusal(bert_large(DType::bf16), r);
  EXPECT_NE(with_less.find("it fits with at least host_memory = "), std::string::npos) << with_less;
  EXPECT_EQ(with_less.find("this machine"), std::string::npos) << with_less;
  // With 3 GiB of GPU memory it takes more than there is, but for reduced states.
  r.gpu_budget_bytes = 3 * kGiB;
  r.machine->gpu->memory_bytes = 3 * kGiB;
  for (int64_t host_mib : {2560, 10}) {
    r.host_budget_bytes = host_mib * kMiB;
    const std::string message = refusal(bert_large(DType::bf16), r);
    EXPECT_NE(message.find("with optim = adamw_8bit"), std::string::npos) << message;
    EXPECT_NE(message.find("; else only with at least "), std::string::npos) << message;
    EXPECT_TRUE(message.ends_with(", more than this machine can give")) << message;
    for (const std::string& piece : advice_in(message)) {
      const PlanRequest changed = changed_by(piece, r);
      EXPECT_EQ(refusal(bert_large(DType::bf16), changed), "") << piece;
      EXPECT_LE(changed.host_budget_bytes, 3 * kGiB) << piece;
      EXPECT_LE(changed.gpu_budget_bytes, 3 * kGiB) << piece;
    }
  }
  // Where nothing is enough it says how much would be.
  const std::string too_large = refusal(bert(5120, 40), r);
  EXPECT_TRUE(advice_in(too_large).empty()) << too_large;
  EXPECT_NE(too_large.find("it would fit with at least "), std::string::npos) << too_large;
  EXPECT_TRUE(too_large.ends_with("take a smaller model")) << too_large;
}

TEST(Refusal, SeveralChangesAreNoMoreThanItTakes) {
  const ModelTable model = bert_large(DType::bf16);
  int n_several = 0;
  for (const PlanRequest& r : tight_requests())
    for (std::string piece : advice_in(refusal(model, r))) {
      if (leaves_results(piece) || piece.find("_memory") != std::string::npos) continue;
      piece = std::regex_replace(piece, std::regex(", gradient"), "; gradient");
      if (piece.find(", ") == std::string::npos && piece.find(" and ") == std::string::npos)
        continue;
      ++n_several;
      // Each option left away in its turn.
      const std::regex option("[a-z_]+ = [a-z0-9_]+(; [a-z_]+ = [0-9]+)?");
      for (std::sregex_iterator at(piece.begin(), piece.end(), option), end; at != end; ++at) {
        std::string fewer = piece;
        fewer.erase(static_cast<size_t>(at->position()), static_cast<size_t>(at->length()));
        EXPECT_NE(refusal(model, changed_by(fewer, r)), "") << piece << " without " << at->str();
      }
    }
  EXPECT_GT(n_several, 0);
}

TEST(Refusal, ARefusalNamesReducedStatesWhereTheyHelp) {
  const ModelTable model = bert_large(DType::bf16);
  PlanRequest r = request_on_cpu(3584 * kMiB);  // 14 bytes a parameter with fp32 states: 4.4 GiB
  r.train_batch_size = 1;
  r.max_length = 64;
  const std::string message = refusal(model, r);
  EXPECT_NE(message.find(", or with optim = adamw_8bit"), std::string::npos) << message;
  r.optim = simd::Optim::adamw_8bit;
  EXPECT_EQ(refusal(model, r), "");
  // A setting that a run has already is no advice, and one that trains nothing has no states.
  r.split_master = true;
  r.host_budget_bytes = 512 * kMiB;
  EXPECT_EQ(refusal(model, r).find("adamw_8bit"), std::string::npos) << refusal(model, r);
  PlanRequest evaluation = request_on_cpu(256 * kMiB);
  evaluation.trains = false;
  EXPECT_EQ(refusal(model, evaluation).find("optim"), std::string::npos);
}

// What the process takes beside the budget may be more than all of the memory that it was given.
TEST(Refusal, ABudgetBelowNothingIsRefusedWithAnAmountThatIsEnough) {
  for (const Place memory : kMemories) {
    const ModelTable model = bert_large(DType::bf16);
    PlanRequest r = request(11 * kGiB);
    (memory == Place::device ? r.gpu_budget_bytes : r.host_budget_bytes) = -600 * kMiB;
    const std::string text = refusal(model, r);
    const auto enough = memory_in(text, memory);
    ASSERT_TRUE(enough) << text;
    EXPECT_NO_THROW(make_plan(model, with_memory(r, memory, *enough))) << text;
  }
}

TEST(Refusal, TheLargestNumbersNeitherFitNorOverflow) {
  for (AttentionBackend attention :
       {AttentionBackend::cpu_math, AttentionBackend::flash, AttentionBackend::memory_efficient}) {
    const ModelTable model = largest_bert(attention);
    // Texts at once (0: the planner chooses), and their length. A GPU's kernels take no more.
    const int64_t n_texts_max = attention == AttentionBackend::cpu_math ? 1 << 20 : 1 << 14;
    for (auto [micro, max_length] :
         {std::pair<int64_t, int64_t>(0, 64), {1 << 13, 1 << 18}, {n_texts_max, 64}}) {
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
    EXPECT_NE(std::string(e.what()).find("on the GPU"), std::string::npos) << e.what();
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
