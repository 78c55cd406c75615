// Times each of Ferry's layer and update operations alone, forward and backward, on the GPU (or
// CPU) that is here, beside the same composed of plain LibTorch calls. A line each: the bytes that
// the operation must move (inputs read once, results written once, nothing between), the median
// time of a call and the bytes a second that this makes, LibTorch's time, and how many times as
// long that is. Before anything is timed both must give the same results, without dropout; the
// largest difference is shown, relative to the result's norm. Exits 1 where one is too large.
//
//   ops_bench [--device cuda|cpu] [--dtype bf16|fp16|fp32] [--shape bert-large|llama-3g|gpt2-13g]
//             [--tokens N] [--length N] [--params N] [--steps N] [--only TEXT] [--json]
//             [--attention auto|flash|memory_efficient] [--deterministic on|off]
//
// --params: gradients and states of norm, accumulation and AdamW; a layer's unless given. --only:
// operations whose name has this in it. Calls are queued without waiting for one another, so a GPU
// that is faster than its host shows the host's time. Operands below the size of the last cache may
// be read from there.

#include <ATen/Context.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "models/decoder/decoder_table.h"
#include "src/base/error.h"
#include "src/engine/torch_setup.h"
#include "tests/perf/ops/cases.h"

namespace ferry::ops_bench {
namespace {

using Clock = std::chrono::steady_clock;
using Arguments = std::map<std::string, std::string>;

constexpr float kDropout = 0.1f;
constexpr int kWarm_up_calls = 5;

Error usage(const std::string& what) {
  return {Fault::usage, "ops_bench", what, "see the file's head"};
}

Arguments arguments_of(int argc, char** argv) {
  Arguments values = {{"device", "cuda"},    {"dtype", "bf16"},      {"shape", "bert-large"},
                      {"tokens", "0"},       {"length", "0"},        {"params", "0"},
                      {"steps", "30"},       {"only", ""},           {"json", "off"},
                      {"attention", "auto"}, {"deterministic", "on"}};
  for (int i = 1; i < argc; ++i) {
    const std::string key = argv[i];
    const auto found = values.find(key.substr(std::min<size_t>(2, key.size())));
    if (found == values.end()) throw usage("unknown option " + key);
    if (found->first == "json") {
      found->second = "on";
    } else {
      if (++i == argc) throw usage(key + " needs a value");
      found->second = argv[i];
    }
  }
  return values;
}

Sizes sizes_of(Arguments& args) {
  const auto number = [&](const char* name, int64_t otherwise) {
    const int64_t given = std::atoll(args[name].c_str());
    return given > 0 ? given : otherwise;
  };
  Sizes sizes;
  const auto decoder = [](const DecoderConfig& config, Family family, int64_t tokens,
                          int64_t length) {
    return Sizes{.tokens = tokens,
                 .length = length,
                 .width = config.hidden_size,
                 .inner = config.intermediate_size,
                 .n_heads = config.num_attention_heads,
                 .n_kv_heads = config.num_key_value_heads,
                 .vocab = config.vocab_size,
                 .family = family};
  };
  if (args["shape"] == "bert-large") {
    sizes = {.tokens = 16384,
             .length = 512,
             .width = 1024,
             .inner = 4096,
             .n_heads = 16,
             .n_kv_heads = 16,
             .vocab = 30522};
  } else if (args["shape"] == "llama-3g") {
    sizes = decoder(llama_3g(), Family::llama, 8192, 1024);
  } else if (args["shape"] == "gpt2-13g") {
    sizes = decoder(gpt2_13g(), Family::gpt2, 16384, 512);
  } else {
    throw usage("unknown shape " + args["shape"]);
  }
  sizes.tokens = number("tokens", sizes.tokens);
  sizes.length = number("length", std::min(sizes.length, sizes.tokens));
  if (sizes.tokens % sizes.length != 0)
    throw usage(fmt::format("{} tokens are not whole sequences of {}", sizes.tokens, sizes.length));
  // Masked language models learn from 15 % of their tokens.
  sizes.head_rows =
      sizes.is_decoder() ? sizes.tokens : std::max<int64_t>(1, sizes.tokens * 15 / 100);
  const int64_t n_matrices = sizes.family == Family::llama ? 3 : 2;  // of the MLP
  sizes.n_params =
      number("params", sizes.width * (sizes.qkv_width() + sizes.width + n_matrices * sizes.inner));
  return sizes;
}

Setup setup_of(Arguments& args) {
  const std::map<std::string, at::ScalarType> types = {
      {"bf16", at::kBFloat16}, {"fp16", at::kHalf}, {"fp32", at::kFloat}};
  const auto type = types.find(args["dtype"]);
  if (type == types.end()) throw usage("unknown dtype " + args["dtype"]);
  Setup setup = {.sizes = sizes_of(args), .type = type->second};
  if (args["device"] == "cpu") return setup;
  if (args["device"] != "cuda") throw usage("unknown device " + args["device"]);
  if (!at::hasCUDA())
    throw Error(Fault::machine, "ops_bench", "no CUDA GPU answers", "--device cpu");
  setup.device = at::Device(at::kCUDA, 0);
  const std::string& attention = args["attention"];
  if (attention != "auto" && attention != "flash" && attention != "memory_efficient")
    throw usage("unknown attention " + attention);
  const bool flash = attention == "flash" || (attention == "auto" && setup.type != at::kFloat);
  setup.attention = flash ? AttentionBackend::flash : AttentionBackend::memory_efficient;
  return setup;
}

/** Median over the calls, each from the one before it to its own end. */
double median_us(at::Device device, const Call& call, int n_calls) {
  for (int i = 0; i < kWarm_up_calls; ++i)
    call();
  std::vector<double> us;
  if (device.is_cuda()) {
    const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
    std::vector<c10::Event> marks;
    for (int i = 0; i <= n_calls; ++i)  // the kind that keeps the time
      marks.emplace_back(device.type(), c10::EventFlag::BACKEND_DEFAULT);
    marks[0].record(stream);
    for (size_t i = 1; i < marks.size(); ++i) {
      call();
      marks[i].record(stream);
    }
    marks.back().synchronize();
    for (size_t i = 1; i < marks.size(); ++i)
      us.push_back(1e3 * marks[i - 1].elapsedTime(marks[i]));
  } else {
    for (int i = 0; i < n_calls; ++i) {
      const auto start = Clock::now();
      call();
      us.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
  }
  std::ranges::nth_element(us, us.begin() + n_calls / 2);
  return us[static_cast<size_t>(n_calls / 2)];
}

/** A few roundings of the type, as LibTorch's compositions round between their calls. */
double bar_of(at::ScalarType type) {
  return type == at::kFloat ? 1e-5 : type == at::kHalf ? 2.5e-3 : 2e-2;
}

/** The largest difference over the results, each relative to its norm; NaN where one is. */
double error_of(const Direction& direction) {
  const auto norm = [](const at::Tensor& x) {
    return at::linalg_vector_norm(x.to(at::kFloat)).item<double>();
  };
  Tensors ours = direction.ferry();
  if (direction.as_libtorch) ours = direction.as_libtorch(ours);
  const Tensors theirs = direction.libtorch();
  FERRY_CHECK(ours.size() == theirs.size(), "{} results and {}", ours.size(), theirs.size());
  double error = 0;
  for (size_t i = 0; i < ours.size(); ++i) {
    FERRY_CHECK(ours[i].sizes() == theirs[i].sizes(), "result {} of another shape", i);
    const at::Tensor their = theirs[i].to(at::kFloat);
    const double now = norm(ours[i].to(at::kFloat).sub(their)) / norm(their);
    if (std::isnan(now)) return now;
    error = std::max(error, now);
  }
  return error;
}

/** The result of `work`; nothing where LibTorch's way needs more memory than there is. */
template <typename Work>
std::optional<double> if_it_fits(const Work& work) {
  try {
    return work();
  } catch (const c10::OutOfMemoryError&) {
    return std::nullopt;
  }
}

struct Result {
  double ferry_us = 0;
  std::optional<double> libtorch_us, error;  ///< none: out of memory
};

void print_json(Arguments& args,
                const Setup& setup,
                const std::string& name,
                const Direction& direction,
                const Result& result) {
  nlohmann::ordered_json out = {{"operation", name}, {"direction", direction.name}};
  for (const char* key : {"shape", "dtype", "device"})
    out[key] = args[key];
  out["tokens"] = setup.sizes.tokens;
  out["bytes"] = direction.n_bytes;
  out["ferry_us"] = result.ferry_us;
  out["ferry_gb_per_s"] = 1e-3 * static_cast<double>(direction.n_bytes) / result.ferry_us;
  if (result.libtorch_us) {
    out["libtorch_us"] = *result.libtorch_us;
    out["libtorch_over_ferry"] = *result.libtorch_us / result.ferry_us;
  }
  if (result.error) out["error"] = *result.error;
  fmt::print("{}\n", out.dump());
}

void print_row(const std::string& name, const Direction& direction, const Result& result) {
  const auto number = [](std::optional<double> value, const char* form) {
    return value ? fmt::format(fmt::runtime(form), *value) : std::string("no memory");
  };
  std::optional<double> ratio = result.libtorch_us;
  if (ratio) *ratio /= result.ferry_us;
  const double n_bytes = static_cast<double>(direction.n_bytes);
  fmt::print("{:33} {:8} {:9.1f} {:11.1f} {:8.1f} {:>12} {:>9} {:>9}\n", name, direction.name,
             1e-6 * n_bytes, result.ferry_us, 1e-3 * n_bytes / result.ferry_us,
             number(result.libtorch_us, "{:.1f}"), number(ratio, "{:.2f}"),
             number(result.error, "{:.1e}"));
}

int run(int argc, char** argv) {
  Arguments args = arguments_of(argc, argv);
  Setup timed = setup_of(args);
  timed.p = kDropout;
  Setup checked = timed;
  checked.p = 0;
  const int n_calls = std::max(1, std::atoi(args["steps"].c_str()));
  const bool json = args["json"] == "on";
  set_up_torch({.deterministic = args["deterministic"] == "on"});
  if (!json)
    fmt::print("{:33} {:8} {:>9} {:>11} {:>8} {:>12} {:>9} {:>9}\n", "operation", "", "MB",
               "Ferry us", "GB/s", "LibTorch us", "x Ferry's", "error");
  std::vector<MakeOperation> all = token_operations(timed.sizes);
  for (const auto& more : {row_operations(timed.sizes), update_operations()})
    all.insert(all.end(), more.begin(), more.end());
  bool is_same = true;
  for (const MakeOperation make : all) {
    at::manual_seed(5);
    std::vector<std::optional<double>> errors;
    {
      const Operation operation = make(checked);
      if (operation.name.find(args["only"]) == std::string::npos) continue;
      for (const Direction& direction : operation.directions)
        errors.push_back(if_it_fits([&] { return error_of(direction); }));
    }
    const Operation operation = make(timed);
    for (size_t i = 0; i < errors.size(); ++i) {
      const Direction& direction = operation.directions[i];
      const Result result = {median_us(timed.device, direction.ferry, n_calls), if_it_fits([&] {
                               return median_us(timed.device, direction.libtorch, n_calls);
                             }),
                             errors[i]};
      if (json) {
        print_json(args, timed, operation.name, direction, result);
      } else {
        print_row(operation.name, direction, result);
      }
      std::fflush(stdout);
      if (!errors[i] || *errors[i] <= bar_of(timed.type)) continue;
      is_same = false;
      fmt::print(stderr, "ops_bench: {}, {}: Ferry and LibTorch differ by {:.1e}, allowed {:.1e}\n",
                 operation.name, direction.name, *errors[i], bar_of(timed.type));
    }
  }
  return is_same ? 0 : 1;
}

}  // namespace
}  // namespace ferry::ops_bench

int main(int argc, char** argv) {
  try {
    return ferry::ops_bench::run(argc, argv);
  } catch (const ferry::Error& e) {
    fmt::print(stderr, "ops_bench: {}\n", e.what());
    return e.exit_code();
  } catch (const std::exception& e) {  // LibTorch's
    fmt::print(stderr, "ops_bench: {}\n", e.what());
    return 1;
  }
}
