// A machine profile as JSON. Every structure names its fields once, in visit(): a Writer puts what
// is not zero into an object, a Reader takes them out again and refuses what cannot be.

#include "src/plan/machine/machine_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <nlohmann/json.hpp>
#include <tuple>

#include "src/base/bytes.h"
#include "src/base/error.h"
#include "src/base/json/json_reader.h"
#include "src/base/nearest_name.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** 2: small products and flash attention are timed as CUDA graphs run them, without launches.
 * 3: the memory of kernels and of the process may be there. 4: NVMe drives may be there. 5: steps
 * that were timed may be there. 6: exchanges of ranks may be there. 7: GPUs of several kinds may be
 * there. */
constexpr int64_t kVersion = 7, kVersion_least = 2;
/** Larger counts are no machine's, and would overflow in sums. */
constexpr int64_t kCount_max = int64_t{1} << 50;
/** Operations, bytes or parameters a second: slower or faster ones are a slip of who wrote them. */
constexpr double kRate_min = 1, kRate_max = 1e21;

template <class T, class Is>
concept For = std::same_as<std::remove_const_t<T>, Is>;

enum class Need { needed, optional };

template <class Archive, For<CopyRate> T>
void visit(Archive& archive, T& copy) {
  archive.count("bytes", copy.n_bytes, Need::needed);
  archive.rate("h2d", copy.h2d, Need::needed);
  archive.rate("d2h", copy.d2h, Need::needed);
  archive.rate("h2d_beside_d2h", copy.h2d_beside_d2h);
  archive.rate("d2h_beside_h2d", copy.d2h_beside_h2d);
}

template <class Archive, For<GemmRate> T>
void visit(Archive& archive, T& gemm) {
  archive.type("type", gemm.type);
  archive.count("rows", gemm.rows, Need::needed);
  archive.count("width", gemm.width, Need::needed);
  archive.rate("flops_per_s", gemm.flops_per_s, Need::needed);
}

template <class Archive, For<AttentionRate> T>
void visit(Archive& archive, T& attention) {
  archive.type("type", attention.type);
  archive.text("backend", attention.backend, Need::needed);
  archive.count("length", attention.length, Need::needed);
  archive.count("head_width", attention.head_width, Need::needed);
  archive.rate("forward_flops_per_s", attention.forward_flops_per_s, Need::needed);
  archive.rate("backward_flops_per_s", attention.backward_flops_per_s, Need::needed);
}

template <class Archive, For<UpdateRate> T>
void visit(Archive& archive, T& update) {
  archive.count("threads", update.n_threads, Need::needed);
  archive.rate("alone", update.alone, Need::needed);
  archive.rate("beside_copies", update.beside_copies);
  archive.rate("h2d_beside", update.h2d_beside);
  archive.rate("d2h_beside", update.d2h_beside);
}

template <class Archive, For<KernelMemory> T>
void visit(Archive& archive, T& kernels) {
  archive.count("loaded_bytes", kernels.loaded_bytes);
  archive.count("wide_heads_bytes", kernels.wide_heads_bytes);
  archive.count("wide_rows_bytes", kernels.wide_rows_bytes);
  archive.count("graph_bytes", kernels.graph_bytes);
  archive.count("graph_host_bytes", kernels.graph_host_bytes);
}

template <class Archive, For<ProcessMemory> T>
void visit(Archive& archive, T& process) {
  archive.count("at_start_bytes", process.at_start_bytes);
  archive.count("later_bytes", process.later_bytes);
}

template <class Archive, For<ExchangeProfile> T>
void visit(Archive& archive, T& exchange) {
  archive.text("source", exchange.source);
  archive.flag("peer_access", exchange.has_peer_access);
  archive.rate("bytes_per_s", exchange.bytes_per_s, Need::needed);
  archive.seconds("message_s", exchange.message_s);
  archive.rate("network_bytes_per_s", exchange.network_bytes_per_s);
  archive.seconds("network_message_s", exchange.network_message_s);
}

template <class Archive, For<GpuProfile> T>
void visit(Archive& archive, T& gpu) {
  archive.text("name", gpu.name, Need::needed);
  archive.count("of_host", gpu.n_of_host);
  archive.count("compute_capability", gpu.compute_capability, Need::needed);
  archive.count("memory_bytes", gpu.memory_bytes, Need::needed);
  archive.count("context_bytes", gpu.context_bytes);
  archive.flag("drives_display", gpu.drives_display);
  archive.rate("memory_bytes_per_s", gpu.memory_bytes_per_s);
  archive.seconds("launch_s", gpu.launch_s);
  archive.rate("adamw_params_per_s", gpu.update_params_per_s);
  archive.watts("power_w", gpu.power_w);
  archive.text("driver", gpu.driver);
  archive.count("pcie_generation", gpu.pcie_generation);
  archive.count("pcie_width", gpu.pcie_width);
  archive.count("pinned_bytes_max", gpu.pinned_bytes_max);
  archive.flag("pins_nothing", gpu.pins_nothing);
  archive.part("kernels", gpu.kernels);
  archive.part("process", gpu.process);
  archive.list("copies", gpu.copies);
  archive.list("gemms", gpu.gemms);
  archive.list("attentions", gpu.attentions);
  archive.part("exchange", gpu.exchange);
}

template <class Archive, For<HostProfile> T>
void visit(Archive& archive, T& host) {
  archive.text("cpu", host.cpu);
  archive.count("threads", host.n_threads);
  archive.text("simd", host.simd);
  archive.count("memory_bytes", host.memory_bytes);
  archive.rate("memory_bytes_per_s", host.memory_bytes_per_s);
  archive.rate("dram_bytes_per_s", host.dram_bytes_per_s);
  archive.part("process", host.process);
  archive.list("adamw", host.updates);
  archive.list("gemms", host.gemms);
  archive.list("attentions", host.attentions);
  archive.part("exchange", host.exchange);
}

template <class Archive, For<DiskProfile> T>
void visit(Archive& archive, T& disk) {
  archive.text("directory", disk.directory);
  archive.rate("write_bytes_per_s", disk.write_bytes_per_s);
  archive.rate("read_bytes_per_s", disk.read_bytes_per_s);
}

template <class Archive, For<NvmeProfile> T>
void visit(Archive& archive, T& nvme) {
  archive.texts("drives", nvme.drives);
  archive.texts("directories", nvme.directories);
  archive.text("source", nvme.source);
  archive.rate("read_bytes_per_s", nvme.read_bytes_per_s, Need::needed);
  archive.rate("write_bytes_per_s", nvme.write_bytes_per_s, Need::needed);
  archive.rate("mixed_bytes_per_s", nvme.mixed_bytes_per_s, Need::needed);
  archive.seconds("flush_s", nvme.flush_s);
  archive.count("request_bytes", nvme.request_bytes);
  archive.count("depth", nvme.depth);
}

template <class Archive, For<LearntStep> T>
void visit(Archive& archive, T& step) {
  archive.text("run", step.run, Need::needed);
  archive.text("plan", step.plan, Need::needed);
  archive.count("micro_batch_size", step.micro_batch_size, Need::needed);
  archive.count("n_on_gpu", step.n_on_gpu);
  archive.long_seconds("predicted_s", step.predicted_s, Need::needed);
  archive.long_seconds("step_s", step.step_s, Need::needed);
  archive.text("measured", step.measured);
}

template <class Archive, For<MachineProfile> T>
void visit(Archive& archive, T& profile) {
  archive.text("name", profile.name, Need::needed);
  archive.text("source", profile.source);
  archive.texts("assumptions", profile.assumptions);
  archive.part("gpu", profile.gpu);
  archive.list("other_gpus", profile.other_gpus);
  archive.part("host", profile.host);
  archive.part("disk", profile.disk);
  archive.list("nvme", profile.nvme);
  archive.list("learnt", profile.learnt);
}

class Writer {
 public:
  void text(const char* key, const std::string& value, Need = Need::optional) {
    if (!value.empty()) out[key] = value;
  }
  void count(const char* key, int64_t value, Need = Need::optional) {
    if (value != 0) out[key] = value;
  }
  void rate(const char* key, double value, Need = Need::optional) {
    if (value != 0) out[key] = value;
  }
  void seconds(const char* key, double value) { rate(key, value); }
  void long_seconds(const char* key, double value, Need) { rate(key, value); }
  void watts(const char* key, double value) { rate(key, value); }
  void flag(const char* key, bool value) { out[key] = value; }
  void type(const char* key, DType value) { out[key] = name_of(value); }
  void texts(const char* key, const std::vector<std::string>& values) {
    if (!values.empty()) out[key] = values;
  }
  template <class T>
  void list(const char* key, const std::vector<T>& rows) {
    for (const T& row : rows) {
      Writer each;
      visit(each, row);
      out[key].push_back(std::move(each.out));
    }
  }
  template <class T>
  void part(const char* key, const T& value) {
    Writer inner;
    visit(inner, value);
    if (!inner.out.empty()) out[key] = std::move(inner.out);
  }
  template <class T>
  void part(const char* key, const std::optional<T>& value) {
    if (value) part(key, *value);
  }

  ordered_json out = ordered_json::object();
};

/** The key that must rise from row to row: the size, or the size among rows of one kind. */
std::tuple<int, std::string, int64_t, int64_t> order_of(const CopyRate& copy) {
  return {0, "", copy.n_bytes, 0};
}
std::tuple<int, std::string, int64_t, int64_t> order_of(const GemmRate& gemm) {
  return {static_cast<int>(gemm.type), "", gemm.rows, gemm.width};
}
std::tuple<int, std::string, int64_t, int64_t> order_of(const AttentionRate& attention) {
  return {static_cast<int>(attention.type), attention.backend, attention.length,
          attention.head_width};
}
std::tuple<int, std::string, int64_t, int64_t> order_of(const UpdateRate& update) {
  return {0, "", update.n_threads, 0};
}
std::tuple<int, std::string, int64_t, int64_t> order_of(const NvmeProfile& nvme) {
  return {0, fmt::format("{}", fmt::join(nvme.drives, "\n")), 0, 0};
}
std::tuple<int, std::string, int64_t, int64_t> order_of(const LearntStep& step) {
  return {0,
          fmt::format("{}\n{}\n{}\n{}", step.run, step.plan, step.micro_batch_size, step.n_on_gpu),
          0, 0};
}
bool is_of_one_kind(const auto& a, const auto& b) {
  return std::get<0>(a) == std::get<0>(b) && std::get<1>(a) == std::get<1>(b);
}

class Reader {
 public:
  explicit Reader(JsonReader object) : object_(std::move(object)) {
    if (!object_.is_object()) object_.refuse("an object");
  }

  void text(const char* key, std::string& value, Need need = Need::optional) {
    if (const auto found = find(key, need)) value = text_of(*found);
  }
  template <std::integral Integer>
  void count(const char* key, Integer& value, Need need = Need::optional) {
    const int64_t most = std::min<int64_t>(kCount_max, std::numeric_limits<Integer>::max());
    if (const auto found = find(key, need)) value = static_cast<Integer>(found->integer(1, most));
  }
  void rate(const char* key, double& value, Need need = Need::optional) {
    between(key, value, need, kRate_min, kRate_max);
  }
  void seconds(const char* key, double& value) { between(key, value, Need::optional, 1e-9, 10); }
  /** Of a whole step. */
  void long_seconds(const char* key, double& value, Need need) {
    between(key, value, need, 1e-9, 1e6);
  }
  void watts(const char* key, double& value) { between(key, value, Need::optional, 1, 1e6); }
  void flag(const char* key, bool& value) { value = object_.flag(known(key), value); }
  void type(const char* key, DType& value) {
    const JsonReader found = object_.at(known(key));
    const std::string name = text_of(found);
    for (DType type : {DType::f32, DType::f16, DType::bf16}) {
      if (name != name_of(type)) continue;
      value = type;
      return;
    }
    found.refuse("fp32, fp16 or bf16");
  }
  void texts(const char* key, std::vector<std::string>& values) {
    for_each(key, [&](const JsonReader& element) { values.push_back(text_of(element)); });
  }
  template <class T>
  void list(const char* key, std::vector<T>& rows) {
    for_each(key, [&](const JsonReader& element) {
      T row;
      Reader each(element);
      visit(each, row);
      each.refuse_unknown();
      if constexpr (requires { order_of(row); })  // GPUs of a host stand as they do there
        for (const T& earlier : rows)
          if (is_of_one_kind(order_of(earlier), order_of(row)) &&
              order_of(earlier) >= order_of(row))
            element.refuse("larger sizes after smaller ones, each once");
      rows.push_back(std::move(row));
    });
  }
  template <class T>
  void part(const char* key, T& value) {
    const auto found = find(key, Need::optional);
    if (!found) return;
    Reader inner(*found);
    visit(inner, value);
    inner.refuse_unknown();
  }
  template <class T>
  void part(const char* key, std::optional<T>& value) {
    if (find(key, Need::optional)) part(key, value.emplace());
  }

  const char* known(const char* key) {
    known_.emplace_back(key);
    return key;
  }
  /** Refuses keys that nobody asked for: a slip in a hand-written profile would otherwise change a
   * plan silently. */
  void refuse_unknown() const {
    for (const auto& [key, value] : object_.fields()) {
      if (value.value().is_null()) value.refuse("a value");  // a figure that was not finite
      if (std::ranges::find(known_, key) != known_.end()) continue;
      const std::string nearest = nearest_name(key, known_);
      value.fail("is an unknown key",
                 nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest));
    }
  }

 private:
  std::optional<JsonReader> find(const char* key, Need need) {
    known(key);
    if (need == Need::needed) return object_.at(key);
    return object_.find(key);
  }
  void between(const char* key, double& value, Need need, double least, double most) {
    if (const auto found = find(key, need)) value = found->number(least, most);
  }
  void for_each(const char* key, auto&& use) {
    const auto found = find(key, Need::optional);
    for (size_t i = 0; found && i < found->size(); ++i)
      use(found->at(i));
  }
  static std::string text_of(const JsonReader& value) {
    std::string text = value.text();
    if (text.empty()) value.refuse("a text");
    // It is shown to people as it is.
    if (std::ranges::any_of(text, [](unsigned char c) { return c < ' ' || c == 0x7f; }))
      value.refuse("a text without control characters");
    return text;
  }

  JsonReader object_;
  std::vector<std::string_view> known_;
};

void check_version(const JsonReader& profile) {
  const auto version = profile.find("version");
  if (!version || !version->value().is_number_integer())
    throw Error(Fault::data, "machine.profile",
                fmt::format("'{}' is no machine profile: it has no version", profile.file()),
                "`ferry doctor` measures this machine");
  if (version->value() >= kVersion_least && version->value() <= kVersion) return;
  if (version->value() > kVersion)
    version->fail(
        fmt::format("is {}, and this ferry knows {}", version->value().dump(), kVersion),
        "it is a newer ferry's: use that one, or measure anew with this one's `ferry doctor`");
  version->fail(fmt::format("is {}: an older ferry measured otherwise", version->value().dump()));
}

}  // namespace

bool KernelMemory::has_seen_spills() const {
  return wide_heads_bytes > kMiB && wide_rows_bytes > kMiB;
}

MachineProfile parse_machine_profile(std::string_view json, const std::string& origin) {
  const JsonReader object = JsonReader::parse(
      std::string(json), {origin, "machine.profile", "`ferry doctor` measures this machine anew"});
  Reader reader(object);
  check_version(object);
  reader.known("version");
  MachineProfile profile;
  visit(reader, profile);
  reader.refuse_unknown();
  return profile;
}

std::string to_json(const MachineProfile& profile) {
  Writer writer;
  writer.out["version"] = kVersion;
  visit(writer, profile);
  return writer.out.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace ferry
