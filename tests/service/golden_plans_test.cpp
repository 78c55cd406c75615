// Every figure of the plans of all presets and of the shapes that are measured, beside those in
// golden_plans.txt. A change of structure leaves the file as it is. With FERRY_RENEW_GOLDEN=1 it is
// written anew, for a change that is meant.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <iterator>
#include <map>

#include "offload/step/pager.h"
#include "src/base/bytes.h"
#include "src/base/crc32c.h"
#include "src/base/error.h"
#include "src/plan/nvme_need.h"
#include "src/request/param_groups.h"
#include "src/service/preset_request.h"
#include "tests/perf/shapes.h"

namespace ferry::service {
namespace {

const char* const kFile = FERRY_SOURCE_ROOT "/tests/service/golden_plans.txt";

std::string crc_of(const std::string& text) {
  return fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text))));
}

std::string text_of(const BatchShape& batch) {
  return fmt::format("{} tokens, {} sequences of at most {}", batch.tokens, batch.n_seqs_max,
                     batch.max_length);
}

/** Each region of each place. */
std::string regions_of(const Layout& layout, simd::Optim optim) {
  std::string out;
  for (const Region& r : layout.regions)
    out += fmt::format("{} {} {} {} {}\n", name_of(r.tag, optim), name_of(r.place), r.name,
                       r.offset, r.n_bytes);
  return out;
}

/** Each action of a full step: the queue, the bytes and the order, but not the names of roles. */
std::string actions_of(const StepList& list) {
  std::string out;
  for (const Action& a : list) {
    out +=
        fmt::format("{} {} {} {} {}", name_of(a.verb), name_of(a.queue), a.block, a.micro, a.piece);
    for (const auto* ranges : {&a.reads, &a.writes}) {
      out += " |";
      for (const Bytes& b : *ranges)
        out += fmt::format(" {}+{}:{}", b.region, b.offset, b.n_bytes);
    }
    out += fmt::format(" | {} | {} {}\n", fmt::join(a.after, " "), fmt::join(a.after_update, " "),
                       a.after_commit);
  }
  return out;
}

/** Times are rounded: compilers may order sums of them differently. */
std::string text_of(const Simulation& step) {
  std::string out =
      fmt::format("step {:.5e} s, binds {}, host updates {:.5e}, least drive {:.5e}\n", step.step_s,
                  name_of(step.binding()), step.host_updates_s, step.least_drive_s);
  for (int q = 0; q < kQueues; ++q) {
    const auto at = static_cast<size_t>(q);
    if (step.busy_s[at] > 0)
      out += fmt::format("  {} busy {:.5e} alone {:.5e}\n", name_of(static_cast<QueueId>(q)),
                         step.busy_s[at], step.alone_s[at]);
  }
  return out;
}

std::string text_of(const Plan& plan, const PlanRequest& request) {
  const UpdateOrder order =
      request.clips ? UpdateOrder::after_decision : UpdateOrder::as_grads_arrive;
  std::string out = plan.why + "\n";
  out += fmt::format("micro-batches: {} of {}; largest {}; typical {}\n", plan.n_micro,
                     plan.micro_batch_size, text_of(plan.largest), text_of(plan.typical));
  out += fmt::format(
      "blocks: {} resident, {} weights, {} states, {} kept more; on a drive {} states, {} weights, "
      "{} gradients\n",
      plan.n_resident, plan.n_weights, plan.n_states, plan.n_kept_more, plan.n_on_nvme,
      plan.n_weights_on_nvme, plan.n_grads_on_nvme);
  for (const PlanRow& row : rows_of(plan, request.has_gpu))
    out += fmt::format("  {} {} {}\n", name_of(row.place), row.name, row.n_bytes);
  out += fmt::format("reserved {}; scratch {}, library {}, batch {}; host lacks {}\n",
                     fmt::join(plan.layout.n_bytes, " "), plan.shape.scratch_bytes,
                     plan.shape.library_bytes, plan.shape.batch_bytes, plan.host_lacking_bytes);
  const std::string regions = regions_of(plan.layout, plan.shape.optim);
  out += fmt::format("{} regions, crc {}\n", plan.layout.regions.size(), crc_of(regions));
  const StepList list =
      make_training_list(plan.shape, plan.layout, static_cast<int>(plan.n_micro), order);
  out += fmt::format("{} actions, crc {}\n", list.size(), crc_of(actions_of(list)));
  if (plan.predicted) out += text_of(*plan.predicted);
  return out;
}

std::string planned(const ModelTable& model, const PlanRequest& request) {
  try {
    return text_of(make_plan(model, request), request);
  } catch (const Error& error) {
    if (error.fault() != Fault::does_not_fit) throw;
    return std::string(error.what()) + "\n";
  }
}

/** A shape that is measured, on a card that is known. */
struct Measured {
  std::string name, shape;
  int64_t batch, length, gpu_gib;
  DType type = DType::bf16;
  std::function<void(PlanRequest&)> with = [](PlanRequest&) {};
  std::string machine = "h100-80g", frozen;
};

std::string planned(const Measured& of) {
  const MachineProfile profile = find_machine_preset(of.machine);
  const AttentionBackend attention =
      of.type == DType::f32 ? AttentionBackend::memory_efficient : AttentionBackend::flash;
  ModelTable model = make_measured_table(of.shape, 0, {.compute = of.type, .attention = attention});
  if (!of.frozen.empty()) {
    config::Config config;
    config.set("freeze", of.frozen, {config::Source::command_line, "--freeze"});
    apply_param_options(config, model);
  }
  PlanRequest request{.train_batch_size = of.batch,
                      .max_length = of.length,
                      .has_gpu = true,
                      .gpu_budget_bytes = of.gpu_gib * kGiB};
  request.machine = profile;
  of.with(request);
  return planned(model, request);
}

void in_8_bits(PlanRequest& request) {
  request.optim = simd::Optim::adamw_8bit;
  request.split_master = true;
}

std::vector<Measured> measured() {
  return {
      {"MiniLM", "minilm", 256, 256, 4},
      {"BERT-Base", "bert-base", 64, 512, 6},
      {"BERT-Base, frozen embeddings and layers", "bert-base", 64, 512, 4, DType::bf16,
       [](PlanRequest&) {}, "h100-80g", "embeddings.*,encoder.layer.[0-2].*"},
      {"BERT-Large, 4 GiB", "bert-large", 32, 512, 4},
      {"BERT-Large, 8 GiB, fp16", "bert-large", 32, 512, 8, DType::f16},
      {"BERT-Large, 11 GiB, no clipping", "bert-large", 32, 512, 11, DType::bf16,
       [](PlanRequest& r) { r.clips = false; }},
      {"BERT-Large, 24 GiB", "bert-large", 64, 384, 24},
      {"BERT-Large, activations on the host", "bert-large", 64, 512, 6, DType::bf16,
       [](PlanRequest& r) { r.activations = Activations::host; }},
      {"BERT-Large, all on the host, vertical", "bert-large", 32, 512, 4, DType::bf16,
       [](PlanRequest& r) {
         r.placement = Place::host;
         r.micro_batch_size = 8;
         r.order = AccumulationOrder::vertical;
       }},
      {"BERT-Large, little pinned memory", "bert-large", 32, 512, 11, DType::bf16,
       [](PlanRequest& r) { r.pinned_bytes_max = 512 * kMiB; }},
      {"six layers, fp32", "six-layers", 64, 512, 16, DType::f32},
      {"3.0 G of BERT's layers", "stack-3g", 8, 1024, 11},
      {"Llama 3.0 G, 8-bit states", "llama-3g", 8, 1024, 11, DType::bf16, in_8_bits},
      {"Llama 3.0 G on a drive", "llama-3g", 8, 1024, 8, DType::bf16,
       [](PlanRequest& r) {
         r.host_budget_bytes = 12 * kGiB;
         r.has_nvme = true;
         r.machine->nvme = {{.read_bytes_per_s = 7e9,
                             .write_bytes_per_s = 5e9,
                             .mixed_bytes_per_s = 3e9,
                             .flush_s = 1e-3}};
       }},
      {"GPT-2 13 G, 8-bit states", "gpt2-13g", 8, 1024, 11, DType::bf16, in_8_bits},
      {"GPT-2 13 G does not fit", "gpt2-13g", 8, 1024, 2, DType::bf16,
       [](PlanRequest& r) { r.host_budget_bytes = 8 * kGiB; }},
  };
}

std::map<std::string, std::string> sections_of(const std::string& text) {
  std::map<std::string, std::string> out;
  constexpr std::string_view kHead = "== ";
  for (size_t at = text.find(kHead); at != std::string::npos;) {
    const size_t line = text.find('\n', at), next = text.find("\n== ", line);
    const size_t end = next == std::string::npos ? text.size() : next + 1;
    out[text.substr(at + kHead.size(), line - at - kHead.size())] =
        text.substr(line + 1, end - line - 1);
    at = next == std::string::npos ? next : next + 1;
  }
  return out;
}

TEST(GoldenPlans, AreThoseOfTheFile) {
  std::vector<std::pair<std::string, std::future<std::string>>> now;
  for (const PresetFacts& facts : own_presets()) {
    if (facts.head.card.empty()) continue;  // its plan depends on this machine
    now.emplace_back("preset " + facts.preset.name, std::async(std::launch::async, [facts] {
                       const PresetRequest preset = preset_request(facts);
                       return planned(preset.model, preset.request);
                     }));
  }
  for (const Measured& shape : measured())
    now.emplace_back(shape.name,
                     std::async(std::launch::async, [shape] { return planned(shape); }));
  std::string text;
  for (auto& [name, plan] : now)
    text += fmt::format("== {}\n{}", name, plan.get());
  if (std::getenv("FERRY_RENEW_GOLDEN")) {
    std::ofstream(kFile) << text;
    GTEST_SKIP() << "written anew: " << kFile;
  }
  std::ifstream in(kFile);
  const std::string golden((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const auto was = sections_of(golden), is = sections_of(text);
  ASSERT_EQ(was.size(), is.size());
  for (const auto& [name, plan] : was)
    EXPECT_EQ(plan, is.contains(name) ? is.at(name) : "") << name;
}

}  // namespace
}  // namespace ferry::service
