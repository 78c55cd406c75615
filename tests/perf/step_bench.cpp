// Times whole optimizer steps of a BERT or decoder of any size on the GPU (or CPU) that is here:
// random weights, full-length rows, the planner's choice or a forced one. Prints two JSON objects,
// a line each: what the plan predicts (times with --profile, the machine.json of `ferry doctor` or
// presets/machines/), before anything runs; then what was measured, and where each block lives.
// The driver's count of GPU memory and what is swapped out are sampled after each step.
// --gpu-memory is what the driver may count in all, --cap what it may beyond the empty context of
// this process; --host-memory is what the whole process may take of that (nothing: whatever the
// plan wants).
//
//   step_bench --shape bert-large --dtype bf16 --batch 32 --length 512 --gpu-memory 11GiB
//   --placement host --steps 10
//   step_bench --shape llama-3g --batch 8 --length 1024 --gpu-memory 11GiB
//
// --lengths FILE: rows that are not all of --length, each line those of one step; the steps' mean
// is told then, not their median. --layers N: so many of the shape's layers, to time one of them
// where all do not fit. --freeze PATTERNS: parameters that are not trained, as the option freeze of
// a run names them. --attention flash|memory_efficient takes another backend than training would.
// --nvme-path DIR: states, and weights where the plan says so, may live in a file there, which is
// gone afterwards; --placement nvme puts all states there. --resident N: the first N blocks live on
// the GPU, --states-on-gpu N: the states of N blocks after these, whatever the planner says.
// --pinned-memory is the most that is pinned of host memory: copies of the rest go through a ring.
// --force on: where the planner refuses, the plan that takes least GPU memory runs all the same, on
// the memory that is really there. --device simulated: places, slots and queues as on a GPU, in
// host memory; it shows that a plan runs, its times are a CPU's. --measure-plans on: of plans that
// are promised nearly the same time the fastest is found by a step of each, as training does; the
// first object has them under "tried". Threads follow the affinity mask
// (taskset), the CPU kernels' instructions FERRY_SIMD.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <thread>

#include "offload/nvme/open_disk.h"
#include "simd/level.h"
#include "src/base/error.h"
#include "src/base/process/host_memory.h"
#include "src/base/process/threads.h"
#include "src/engine/model_runner.h"
#include "src/engine/session.h"
#include "src/engine/step_time.h"
#include "src/engine/torch_setup.h"
#include "src/plan/nvme_need.h"
#include "src/plan/plan.h"
#include "src/plan/plan_choice.h"
#include "src/request/param_groups.h"
#include "src/request/run_plan.h"
#include "tests/offload/executor/executor_probe.h"
#include "tests/perf/random_rows.h"
#include "tests/perf/shapes.h"

namespace ferry {
namespace {

using Clock = std::chrono::steady_clock;

std::map<std::string, std::string> arguments_of(int argc, char** argv) {
  std::map<std::string, std::string> values = {
      {"shape", "bert-large"},  {"dtype", "bf16"},     {"batch", "32"},
      {"micro", "0"},           {"length", "512"},     {"lengths", ""},
      {"gpu-memory", "0"},      {"placement", "auto"}, {"activations", "auto"},
      {"order", "horizontal"},  {"slots", "0"},        {"steps", "10"},
      {"warmup", "3"},          {"workers", "0"},      {"trace", ""},
      {"profile", ""},          {"resident", "0"},     {"clip", "1.0"},
      {"states-on-gpu", "0"},   {"device", "cuda"},    {"graphs", "on"},
      {"deterministic", "on"},  {"threads", "0"},      {"attention", "auto"},
      {"boundaries", "auto"},   {"force", "off"},      {"cap", "0"},
      {"optim", "adamw"},       {"master", "fp32"},    {"host-memory", "0"},
      {"layers", "0"},          {"freeze", ""},        {"nvme-path", ""},
      {"measure-plans", "off"}, {"pinned-memory", "0"}};
  for (int i = 1; i < argc; i += 2) {
    std::string key = argv[i];
    if (i + 1 == argc)
      throw Error(Fault::usage, "step_bench", key + " needs a value", "see the file's head");
    auto found = values.find(key.substr(std::min<size_t>(2, key.size())));
    if (found == values.end())
      throw Error(Fault::usage, "step_bench", "unknown option " + key, "see the file's head");
    found->second = argv[i + 1];
  }
  return values;
}

/** The value that a word stands for; Error(usage) for one that stands for nothing. */
template <class Value>
Value value_of(const std::map<std::string, std::string>& args,
               const std::string& option,
               const std::map<std::string, Value>& values) {
  const auto found = values.find(args.at(option));
  if (found != values.end()) return found->second;
  std::string known;
  for (const auto& [word, value] : values)
    known += known.empty() ? word : ", " + word;
  throw Error(Fault::usage, "step_bench", fmt::format("--{} {}", option, args.at(option)), known);
}

/** A size, 0 where that is no limit; Error(usage) for what is none. */
int64_t bytes_of(const std::map<std::string, std::string>& args, const std::string& option) {
  if (const auto bytes = parse_bytes(args.at(option))) return *bytes;
  throw Error(Fault::usage, "step_bench", fmt::format("--{} {}", option, args.at(option)),
              fmt::format("a size, as in --{} 11GiB; 0 is no limit", option));
}

/** A number that is not negative; Error(usage) for anything else, also behind a number. */
template <class Number>
Number number_of(const std::map<std::string, std::string>& args, const std::string& option) {
  const std::string& text = args.at(option);
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc{} && end == text.data() + text.size() && number >= 0) return number;
  throw Error(Fault::usage, "step_bench", fmt::format("--{} {}", option, text),
              fmt::format(std::is_integral_v<Number> ? "a whole number from 0 on, as in --{} 8"
                                                     : "a number from 0 on, as in --{} 1.0",
                          option));
}

MachineProfile read_profile(const std::string& file) {
  std::ifstream in(file);
  const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  return parse_machine_profile(text, file);
}

/** The attention that training would take on this device, or that --attention names. */
AttentionBackend attention_of(const std::string& wish, DType compute, const PlanMachine& machine) {
  if (wish == "auto") return choose_attention(compute, machine);
  for (const AttentionBackend backend :
       {AttentionBackend::flash, AttentionBackend::memory_efficient}) {
    if (wish != name_of(backend)) continue;
    if (machine.has_gpu && (backend != AttentionBackend::flash || compute != DType::f32))
      return backend;
    throw Error(Fault::usage, "step_bench", fmt::format("{} attention cannot run here", wish),
                machine.has_gpu ? "flash attention takes --dtype bf16 or fp16"
                                : "leave --attention out with --device cpu");
  }
  throw Error(Fault::usage, "step_bench", "unknown attention " + wish,
              "auto, flash or memory_efficient");
}

/** Weights of the right spread, pieces of one row of random numbers, by several threads: drawing
 * each of some thousand millions would take longer than the steps. */
void fill_weights(const ModelTable& model, const StepShape& shape, Segments& segments) {
  constexpr int64_t kDrawn = 4'000'037, kPiece = 1 << 18, kBetweenBlocks = 314'159;
  std::mt19937_64 random(1);
  std::normal_distribution<float> normal(0, model.init_std);
  std::vector<float> drawn(kDrawn);
  for (float& value : drawn)
    value = normal(random);
  const std::vector<float> ones(kPiece, 1.0f), zeros(kPiece, 0.0f);
  const auto fill = [&](int block) {
    int64_t next = block * kBetweenBlocks % kDrawn;
    for (const ParamSpec& param : model.blocks[block].params)
      for (int64_t at = 0, n = 0; at < param.n_elements; at += n) {
        n = std::min(kPiece, param.n_elements - at);
        const float* from = (param.init == Init::ones ? ones : zeros).data();
        if (param.init == Init::normal) {
          n = std::min(n, kDrawn - next);
          from = drawn.data() + next;
          next = (next + n) % kDrawn;
        }
        segments.set_param(block, param.offset + at, {from, static_cast<size_t>(n)});
      }
  };
  // Blocks on the GPU go through the device, and those on a drive through its window, one after the
  // other.
  std::atomic<int> next_block{0};
  const auto fill_those_on = [&](Place place) {
    for (int block; (block = next_block++) < shape.n_blocks();)
      if (shape.blocks[block].place.states == place) fill(block);
  };
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < std::min(8, n_usable_threads()); ++t)
      threads.emplace_back([&] { fill_those_on(Place::host); });
  }
  for (const Place place : {Place::device, Place::nvme}) {
    next_block = 0;
    fill_those_on(place);
  }
}

/** The plan that takes least GPU memory, to within 4 MiB, and which the planner refused. */
Plan make_least_plan(const ModelTable& model, PlanRequest request) {
  int64_t refused = request.gpu_budget_bytes;
  request.gpu_budget_bytes = INT64_MAX;
  Plan plan = make_plan(model, request);
  int64_t enough = plan.layout.n_bytes[Place::device];
  while (enough - refused > 4 * kMiB) {
    request.gpu_budget_bytes = refused + (enough - refused) / 2;
    try {
      plan = make_plan(model, request);
      enough = std::min(enough - 1, plan.layout.n_bytes[Place::device]);
    } catch (const Error& e) {
      if (e.fault() != Fault::does_not_fit) throw;
      refused = request.gpu_budget_bytes;
    }
  }
  return plan;
}

Plan make_or_force_plan(const ModelTable& model, const PlanRequest& request, bool forces) {
  try {
    return make_plan(model, request);
  } catch (const Error& e) {
    if (!forces || e.fault() != Fault::does_not_fit) throw;
    return make_least_plan(model, request);
  }
}

/** Name, places of states, weights and gradients, number of parameters and of trained ones of each;
 * of tied ones also the number of another block's that it uses, and has gradients of its own for.
 */
nlohmann::ordered_json blocks_of(const StepShape& shape) {
  auto blocks = nlohmann::ordered_json::array();
  for (int b = 0; b < shape.n_blocks(); ++b) {
    const BlockShape& block = shape.blocks[b];
    int64_t n_all = 0, n_trained = 0, n_borrowed = 0;
    for (const TensorExtent& tensor : block.tensors) {
      n_all += tensor.n_elements;
      if (tensor.trainable) n_trained += tensor.n_elements;
    }
    for (int i = 0; i < static_cast<int>(block.borrowed.size()); ++i)
      if (const TensorExtent& tensor = shape.borrowed_tensor(b, i); tensor.trainable)
        n_borrowed += tensor.n_elements;
    blocks.push_back({{"name", block.name},
                      {"place", name_of(block.place.states)},
                      {"weights", name_of(block.place.weights)},
                      {"grads", name_of(block.place.grads)},
                      {"params", n_all},
                      {"trained", n_trained}});
    if (shape.tied(b)) blocks.back()["borrowed"] = n_borrowed;
  }
  return blocks;
}

/** The time of the updates in host memory, where a run's own memory lies: a rate that was measured
 * in other memory is another one on machines that are shared. */
double median_update_alone_ms(Executor& executor) {
  std::array<double, 5> ms{};
  for (double& once : ms)
    once = 1e3 * ExecutorProbe::repeat_host_updates(executor);
  std::ranges::nth_element(ms, ms.begin() + ms.size() / 2);
  return ms[ms.size() / 2];
}

/** The plan that training would take after it has timed some. */
PlanChoice choose_by_steps(const ModelTable& model,
                           const PlanRequest& request,
                           const Plan& plan,
                           RandomRows& rows,
                           const SessionOptions& options) {
  constexpr double kLongRun_s = 1e7;
  const auto time_step = [&](const Plan& rival) {
    const auto start = Clock::now();
    TimedStep timed;
    try {
      Session session(model, rival.shape, rival.layout, rival.largest, options);
      fill_weights(model, rival.shape, session.segments());
      rows.cut(rival, n_token_sizes(model, rival));
      timed.step_s = time_of_step(session, rows.step(0));
    } catch (const Error& error) {
      if (error.fault() != Fault::does_not_fit) throw;
    }
    timed.took_s = std::chrono::duration<double>(Clock::now() - start).count();
    return timed;
  };
  return choose_plan(model, request, plan, {.run_s = kLongRun_s, .time_step = time_step});
}

int run(int argc, char** argv) {
  simd::level();  // a FERRY_SIMD that this machine cannot do shows before any work
  auto args = arguments_of(argc, argv);
  auto number = [&](const char* option) { return number_of<int64_t>(args, option); };
  // All are read before any work, so that one that is none shows at once.
  const int64_t n_warm_up = number("warmup"), n_all = n_warm_up + number("steps");
  const int64_t n_slots = number("slots"), n_resident = number("resident");
  const int64_t n_states = number("states-on-gpu");
  const int64_t n_workers = number("workers"), n_threads = number("threads");
  const int64_t micro_batch_size = number("micro");
  const double clip = number_of<double>(args, "clip");
  const int64_t gpu_memory_bytes = bytes_of(args, "gpu-memory");
  const int64_t cap_bytes = bytes_of(args, "cap");
  const int64_t host_memory_bytes = bytes_of(args, "host-memory");
  const int64_t pinned_memory_bytes = bytes_of(args, "pinned-memory");
  PlanRequest request;
  request.train_batch_size = number("batch");
  request.max_length = number("length");
  const std::map<std::string, bool> switches = {{"on", true}, {"off", false}};
  enum class Kind { cuda, cpu, simulated };
  const Kind kind = value_of<Kind>(
      args, "device", {{"cuda", Kind::cuda}, {"cpu", Kind::cpu}, {"simulated", Kind::simulated}});
  const bool cuda = kind == Kind::cuda;
  TableOptions options;
  options.compute = value_of<DType>(
      args, "dtype", {{"bf16", DType::bf16}, {"fp16", DType::f16}, {"fp32", DType::f32}});
  const CudaProbe probe = cuda ? probe_cuda() : CudaProbe{};
  options.attention =
      attention_of(args["attention"], options.compute,
                   {.has_gpu = cuda, .compute_capability = probe.compute_capability});
  const std::optional<DecoderConfig> decoder = decoder_of(args["shape"], number("layers"));
  ModelTable model = make_measured_table(args["shape"], number("layers"), options);
  config::Config trained;
  trained.set("freeze", args["freeze"], {config::Source::command_line, "--freeze"});
  apply_param_options(trained, model);

  const int64_t context_bytes = cuda ? cuda_driver_used_bytes() : 0;
  request.has_gpu = kind != Kind::cpu;
  if (micro_batch_size > 0) request.micro_batch_size = micro_batch_size;
  RandomRows rows = args["lengths"].empty()
                        ? RandomRows::of_one_length(request.train_batch_size, request.max_length,
                                                    decoder.has_value())
                        : RandomRows::of_file(args["lengths"], request.train_batch_size,
                                              request.max_length, decoder.has_value());
  request.text_tokens = rows.text_tokens();
  if (request.max_length > model.max_positions)
    throw Error(Fault::usage, "step_bench",
                fmt::format("{} has {} positions", args["shape"], model.max_positions),
                "a shorter --length");
  PlanMachine machine = {.has_gpu = cuda};
  if (!args["profile"].empty()) machine.profile = read_profile(args["profile"]);
  request.machine = machine.profile;
  const int64_t n_graphs_most = cuda ? n_graphs_max(model) : 0;
  const int64_t kernels_bytes = loaded_kernels_bytes(model, machine, n_graphs_most);
  request.gpu_budget_bytes = cap_bytes > 0 ? cap_bytes - kernels_bytes
                             : gpu_memory_bytes > 0
                                 ? gpu_memory_bytes - context_bytes - kernels_bytes
                                 : INT64_MAX;
  const ProcessMemory process = process_memory_of(machine, n_graphs_most);
  if (host_memory_bytes > 0)
    request.host_budget_bytes = host_memory_bytes - process.at_start_bytes - process.later_bytes;
  if (pinned_memory_bytes > 0) request.pinned_bytes_max = pinned_memory_bytes;
  using MaybePlace = std::optional<Place>;
  const std::map<std::string, MaybePlace> places = {
      {"auto", std::nullopt}, {"gpu", Place::device}, {"host", Place::host}};
  std::map<std::string, MaybePlace> state_places = places;
  const std::filesystem::path drive = args["nvme-path"];
  request.has_nvme = !drive.empty();
  if (request.has_nvme) state_places["nvme"] = Place::nvme;
  request.placement = value_of(args, "placement", state_places);
  request.activations = value_of<std::optional<Activations>>(args, "activations",
                                                             {{"auto", std::nullopt},
                                                              {"keep", Activations::keep},
                                                              {"selective", Activations::selective},
                                                              {"recompute", Activations::recompute},
                                                              {"host", Activations::host}});
  request.layer_inputs = value_of(args, "boundaries", places);
  request.order =
      value_of<std::optional<AccumulationOrder>>(args, "order",
                                                 {{"auto", std::nullopt},
                                                  {"horizontal", AccumulationOrder::horizontal},
                                                  {"vertical", AccumulationOrder::vertical}});
  if (n_slots > 0) request.n_weight_slots = static_cast<int>(n_slots);
  request.optim = value_of<simd::Optim>(args, "optim",
                                        {{"adamw", simd::Optim::adamw},
                                         {"adamw_bf16", simd::Optim::adamw_bf16},
                                         {"adamw_8bit", simd::Optim::adamw_8bit}});
  request.split_master = value_of<bool>(args, "master", {{"fp32", false}, {"split", true}});
  if (request.split_master && options.compute != DType::bf16)
    throw Error(Fault::usage, "step_bench", "--master split without bf16", "--dtype bf16");
  request.clips = clip > 0 || options.compute == DType::f16;
  Plan plan = make_or_force_plan(model, request, value_of(args, "force", switches));
  if (n_resident + n_states > 0) {  // the first blocks, whatever the planner says
    for (int64_t b = 0; b < n_resident + n_states; ++b)
      plan.shape.blocks.at(static_cast<size_t>(b)).place =
          b < n_resident ? BlockPlacement(Place::device) : kStatesOnDevice;
    plan.layout = make_layout(plan.shape);
    if (request.machine) plan.predicted = simulate_plan(model, request, plan);
  }
  SessionOptions session_options;
  session_options.device = cuda ? DeviceKind::cuda : DeviceKind::cpu;
  if (kind == Kind::simulated)
    session_options.simulated = {.mode = SimulatedMode::threads, .poison = true};
  session_options.pinned_bytes_max = request.pinned_bytes_max;
  session_options.graphs = value_of(args, "graphs", switches);
  session_options.n_workers = n_workers > 0 ? static_cast<int>(n_workers) : n_usable_threads();
  session_options.loss = decoder ? LossKind::causal_lm : LossKind::cross_entropy;
  session_options.optimizer.schedule = {.learning_rate = 2e-5, .n_steps = 1000};
  session_options.optimizer.max_grad_norm = clip;
  session_options.optimizer.loss_scaling = options.compute == DType::f16;
  set_up_torch({.deterministic = value_of(args, "deterministic", switches),
                .intra_op_threads = static_cast<int>(n_threads)});
  PlanChoice choice = {.plan = plan};
  if (value_of(args, "measure-plans", switches)) {
    choice = choose_by_steps(model, request, plan, rows, session_options);
    plan = choice.plan;
  }
  const std::vector<int64_t> token_sizes = rows.cut(plan, n_token_sizes(model, plan));
  const int64_t n_graphs =
      cuda && session_options.graphs ? n_graphs_of(model, plan, token_sizes) : 0;
  const ProcessMemory promised_process = process_memory_of(machine, n_graphs);
  const int64_t promised_gpu_bytes =
      plan.layout.n_bytes[0] + context_bytes + loaded_kernels_bytes(model, machine, n_graphs);
  const int64_t promised_host_bytes =
      plan.layout.n_bytes[1] + promised_process.at_start_bytes + promised_process.later_bytes;
  nlohmann::ordered_json promise = {
      {"why", plan.why}, {"gpu_bytes", promised_gpu_bytes}, {"host_bytes", promised_host_bytes}};
  const PlannedPinning pinning = pinning_of(plan, request);
  promise["pinned_bytes"] = pinning.pinned_bytes;
  promise["unpinned_bytes"] = pinning.unpinned_bytes;
  promise["step_ring_bytes"] = pinning.step_ring_bytes;
  for (const PlanRow& row : rows_of(plan, /*has_gpu=*/true))
    promise["regions"].push_back(
        {{"tag", row.name}, {"place", name_of(row.place)}, {"bytes", row.n_bytes}});
  for (const Rival& rival : choice.tried)
    promise["tried"].push_back(
        {{"why", rival.plan.why},
         {"promised_ms", 1e3 * rival.promised_s},
         {"step_ms", rival.step_s ? nlohmann::ordered_json(1e3 * *rival.step_s) : nullptr}});
  if (plan.predicted) {
    promise["step_ms"] = 1e3 * plan.predicted->step_s;
    promise["binding"] = name_of(plan.predicted->binding());
    for (int q = 0; q < kQueues; ++q)
      promise[fmt::format("{}_busy_ms", name_of(static_cast<QueueId>(q)))] =
          1e3 * plan.predicted->busy_s[q];
  }
  fmt::print("{}\n", nlohmann::ordered_json{{"promised", promise}}.dump());
  std::fflush(stdout);

  std::unique_ptr<FileDisk> disk;
  session_options.describe = [](const SessionState&, const StepReport*) { return std::string(); };
  session_options.drive = {.open = [&](int64_t n_bytes, std::span<std::byte> window) -> Disk& {
                             const std::filesystem::path file = drive / "step_bench.states";
                             disk = open_disk({file}, n_bytes, {.window = window});
                             std::filesystem::remove(file);  // gone, however this process ends
                             return *disk;
                           },
                           .run = "step_bench"};
  Session session(model, plan.shape, plan.layout, plan.largest, session_options);
  fill_weights(model, plan.shape, session.segments());

  const auto seconds_of = [](Clock::time_point time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
  };
  std::vector<double> ms;
  Clock::time_point timed_from;
  int64_t driver_bytes_max = 0, swapped_bytes_max = 0, n_skipped = 0, n_tokens = 0;
  double first_loss = 0;
  StepReport report;
  StepTracer tracer(session.device(), plan.shape);
  for (int64_t step = 0; step < n_all; ++step) {
    if (step == n_all - 3 && !args["trace"].empty()) session.executor().set_tracer(&tracer);
    const std::vector<HostBatch> batches = rows.step(step);
    const auto start = Clock::now();
    if (step == n_warm_up) timed_from = start;
    report = session.step(batches);
    const double took = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
    if (step == 0) first_loss = report.loss;
    if (step >= n_warm_up) {
      ms.push_back(took);
      n_tokens += rows.n_tokens(step);
      n_skipped += report.skipped ? 1 : 0;
    }
    if (cuda) driver_bytes_max = std::max(driver_bytes_max, cuda_driver_used_bytes());
    if (kind == Kind::simulated)  // it has what was reserved
      driver_bytes_max = plan.layout.n_bytes[Place::device];
    swapped_bytes_max = std::max(swapped_bytes_max, process_status_bytes("VmSwap"));
  }
  session.executor().settle();
  const Clock::time_point timed_to = Clock::now();
  const std::vector<TimedAction> actions = tracer.take();
  if (!args["trace"].empty()) write_chrome_trace(args["trace"], actions);
  // Rows of one length: the median step. Ragged ones: all steps, which are not alike.
  double typical = 0;
  if (request.text_tokens) {
    typical =
        1e3 * (seconds_of(timed_to) - seconds_of(timed_from)) / static_cast<double>(ms.size());
  } else {
    std::sort(ms.begin(), ms.end());
    typical = ms[ms.size() / 2];
  }
  nlohmann::ordered_json out;
  for (const auto& [key, value] : args)
    out[key] = value;
  out["why"] = plan.why;
  out["attention_backend"] = name_of(options.attention);
  out["simd"] = simd::level_name();
  out["n_workers"] = session_options.n_workers;
  out["micro_batch_size"] = plan.micro_batch_size;
  out["n_micro"] = plan.n_micro;
  out["blocks"] = blocks_of(plan.shape);
  out["skipped_steps"] = n_skipped;
  out["step_ms"] = typical;
  const double seconds = typical / 1e3, n_steps = static_cast<double>(ms.size());
  out["samples_per_s"] = static_cast<double>(request.train_batch_size) / seconds;
  out["tokens_per_s"] = static_cast<double>(n_tokens) / n_steps / seconds;
  // Tokens and times of all timed steps together: steady_clock is what other programs call the
  // monotonic one.
  out["n_tokens"] = n_tokens;
  out["timed_from_s"] = seconds_of(timed_from);
  out["timed_to_s"] = seconds_of(timed_to);
  if (!actions.empty()) {
    const Overlap overlap = overlap_of(actions);
    out["overlap_percent"] = 100 * overlap.hidden_share();
    for (int q = 0; q < kQueues; ++q)
      out[fmt::format("{}_busy_ms", name_of(static_cast<QueueId>(q)))] =
          1e3 * overlap.busy_s[q] / 3;
    out["update_alone_ms"] = median_update_alone_ms(session.executor());
  }
  out["first_loss"] = first_loss;
  out["loss"] = report.loss;
  out["grad_norm"] = report.grad_norm;
  if (disk) {
    const NvmeNeed need = nvme_need_of(plan.shape, request.n_nvme_copies);
    out["nvme_transport"] = disk->transport();
    out["nvme_read_bytes"] = need.read_bytes;
    out["nvme_written_bytes"] = need.written_bytes;
    out["nvme_store_bytes"] = need.store_bytes;
    out["nvme_window_bytes"] = need.window_bytes;
  }
  out["planned_gpu_bytes"] = plan.layout.n_bytes[0];
  out["planned_host_bytes"] = plan.layout.n_bytes[1];
  const PinnedBytes pinned = session.device().pinned_bytes();
  out["pinned_bytes"] = pinned.pinned;
  out["ring_bytes"] = pinned.ring;
  out["unpinned_bytes"] = pinned.unpinned;
  out["context_bytes"] = context_bytes;
  out["driver_bytes_max"] = driver_bytes_max;
  out["gpu_bytes_max"] = driver_bytes_max - context_bytes;
  out["host_bytes_max"] = process_status_bytes("VmHWM");
  out["swapped_bytes"] = swapped_bytes_max;
  if (cuda) {
    out["library_peak_bytes"] = session.library_peak_bytes();
    out["library_planned_bytes"] = plan.shape.library_bytes;
    const BlockGraphs* graphs = session.runner().graphs();
    out["graphs_recorded"] = graphs ? graphs->n_graphs() : 0;
    out["graphs_replayed"] = graphs ? graphs->n_replays() : 0;
  }
  fmt::print("{}\n", out.dump());
  return 0;
}

}  // namespace
}  // namespace ferry

int main(int argc, char** argv) {
  try {
    return ferry::run(argc, argv);
  } catch (const ferry::Error& e) {
    fmt::print(stderr, "step_bench: {}\n", e.what());
    return e.exit_code();
  }
}
