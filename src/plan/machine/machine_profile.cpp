// A machine profile as JSON. Every structure names its fields once, in visit(): a Writer puts what
// is not zero into an object, a Reader takes them out again and refuses what cannot be.

#include "src/plan/machine/machine_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <nlohmann/json.hpp>
#include <tuple>

#include "src/base/error.h"
#include "src/config/option.h"

namespace ferry {
namespace {

using nlohmann::ordered_json;

/** 2: small products and flash attention are timed as CUDA graphs run them, without launches. */
constexpr int64_t kVersion = 2;
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

template <class Archive, For<AdamwRate> T>
void visit(Archive& archive, T& adamw) {
  archive.count("threads", adamw.n_threads, Need::needed);
  archive.rate("alone", adamw.alone, Need::needed);
  archive.rate("beside_copies", adamw.beside_copies);
  archive.rate("h2d_beside", adamw.h2d_beside);
  archive.rate("d2h_beside", adamw.d2h_beside);
}

template <class Archive, For<GpuProfile> T>
void visit(Archive& archive, T& gpu) {
  archive.text("name", gpu.name, Need::needed);
  archive.count("compute_capability", gpu.compute_capability, Need::needed);
  archive.count("memory_bytes", gpu.memory_bytes, Need::needed);
  archive.count("context_bytes", gpu.context_bytes);
  archive.flag("drives_display", gpu.drives_display);
  archive.rate("memory_bytes_per_s", gpu.memory_bytes_per_s);
  archive.seconds("launch_s", gpu.launch_s);
  archive.rate("adamw_params_per_s", gpu.adamw_params_per_s);
  archive.watts("power_w", gpu.power_w);
  archive.text("driver", gpu.driver);
  archive.count("pcie_generation", gpu.pcie_generation);
  archive.count("pcie_width", gpu.pcie_width);
  archive.list("copies", gpu.copies);
  archive.list("gemms", gpu.gemms);
  archive.list("attentions", gpu.attentions);
}

template <class Archive, For<HostProfile> T>
void visit(Archive& archive, T& host) {
  archive.text("cpu", host.cpu);
  archive.count("threads", host.n_threads);
  archive.text("simd", host.simd);
  archive.count("memory_bytes", host.memory_bytes);
  archive.rate("memory_bytes_per_s", host.memory_bytes_per_s);
  archive.rate("dram_bytes_per_s", host.dram_bytes_per_s);
  archive.list("adamw", host.adamw);
  archive.list("gemms", host.gemms);
  archive.list("attentions", host.attentions);
}

template <class Archive, For<DiskProfile> T>
void visit(Archive& archive, T& disk) {
  archive.text("directory", disk.directory);
  archive.rate("write_bytes_per_s", disk.write_bytes_per_s);
  archive.rate("read_bytes_per_s", disk.read_bytes_per_s);
}

template <class Archive, For<MachineProfile> T>
void visit(Archive& archive, T& profile) {
  archive.text("name", profile.name, Need::needed);
  archive.text("source", profile.source);
  archive.texts("assumptions", profile.assumptions);
  archive.part("gpu", profile.gpu);
  archive.part("host", profile.host);
  archive.part("disk", profile.disk);
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
std::tuple<int, std::string, int64_t, int64_t> order_of(const AdamwRate& adamw) {
  return {0, "", adamw.n_threads, 0};
}
bool is_of_one_kind(const auto& a, const auto& b) {
  return std::get<0>(a) == std::get<0>(b) && std::get<1>(a) == std::get<1>(b);
}

class Reader {
 public:
  Reader(const ordered_json& object, std::string path, const std::string& origin)
      : object_(object), path_(std::move(path)), origin_(origin) {
    if (!object_.is_object()) refuse(path_, &object_, "an object");
  }

  void text(const char* key, std::string& value, Need need = Need::optional) {
    if (const ordered_json* found = find(key, need)) value = text_of(whole(key), *found);
  }
  template <std::integral Integer>
  void count(const char* key, Integer& value, Need need = Need::optional) {
    const ordered_json* found = find(key, need);
    if (!found) return;
    const int64_t most = std::min<int64_t>(kCount_max, std::numeric_limits<Integer>::max());
    if (!found->is_number_integer() || *found < 1 || *found > most)
      refuse(whole(key), found, "an integer above 0");
    value = found->get<Integer>();
  }
  void rate(const char* key, double& value, Need need = Need::optional) {
    between(key, value, need, kRate_min, kRate_max);
  }
  void seconds(const char* key, double& value) { between(key, value, Need::optional, 1e-9, 10); }
  void watts(const char* key, double& value) { between(key, value, Need::optional, 1, 1e6); }
  void flag(const char* key, bool& value) {
    const ordered_json* found = find(key, Need::optional);
    if (!found) return;
    if (!found->is_boolean()) refuse(whole(key), found, "true or false");
    value = found->get<bool>();
  }
  void type(const char* key, DType& value) {
    const std::string name = text_of(whole(key), *find(key, Need::needed));
    for (DType type : {DType::f32, DType::f16, DType::bf16}) {
      if (name != name_of(type)) continue;
      value = type;
      return;
    }
    refuse(whole(key), &object_[key], "fp32, fp16 or bf16");
  }
  void texts(const char* key, std::vector<std::string>& values) {
    for_each(key, [&](const std::string& path, const ordered_json& element) {
      values.push_back(text_of(path, element));
    });
  }
  template <class T>
  void list(const char* key, std::vector<T>& rows) {
    for_each(key, [&](const std::string& path, const ordered_json& element) {
      T row;
      Reader each(element, path, origin_);
      visit(each, row);
      each.refuse_unknown();
      for (const T& earlier : rows)
        if (is_of_one_kind(order_of(earlier), order_of(row)) && order_of(earlier) >= order_of(row))
          refuse(path, &element, "larger sizes after smaller ones, each once");
      rows.push_back(std::move(row));
    });
  }
  template <class T>
  void part(const char* key, T& value) {
    const ordered_json* found = find(key, Need::optional);
    if (!found) return;
    Reader inner(*found, whole(key), origin_);
    visit(inner, value);
    inner.refuse_unknown();
  }
  template <class T>
  void part(const char* key, std::optional<T>& value) {
    if (!object_.contains(key)) return;
    part(key, value.emplace());
  }

  void knows(const char* key) { known_.emplace_back(key); }
  /** Refuses keys that nobody asked for: a slip in a hand-written profile would otherwise change a
   * plan silently. */
  void refuse_unknown() const {
    for (const auto& [key, value] : object_.items()) {
      if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
      const std::string nearest = config::nearest_name(key, known_);
      throw Error(Fault::data, "machine.profile",
                  fmt::format("'{}': unknown key {}", origin_, whole(key)),
                  nearest.empty() ? "" : fmt::format("did you mean '{}'?", nearest));
    }
  }

 private:
  std::string whole(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
  }
  const ordered_json* find(const char* key, Need need) {
    knows(key);
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    if (need == Need::needed) refuse(whole(key), nullptr, "a value");
    return nullptr;
  }
  void between(const char* key, double& value, Need need, double least, double most) {
    const ordered_json* found = find(key, need);
    if (!found) return;
    if (!found->is_number() || !(found->get<double>() >= least && found->get<double>() <= most))
      refuse(whole(key), found, fmt::format("a number from {:g} to {:g}", least, most));
    value = found->get<double>();
  }
  void for_each(const char* key, auto&& use) {
    const ordered_json* found = find(key, Need::optional);
    if (!found) return;
    if (!found->is_array()) refuse(whole(key), found, "a list");
    for (size_t i = 0; i < found->size(); ++i)
      use(fmt::format("{}[{}]", whole(key), i), (*found)[i]);
  }
  std::string text_of(const std::string& path, const ordered_json& value) const {
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      refuse(path, &value, "a text");
    // It is shown to people as it is.
    if (std::ranges::any_of(value.get_ref<const std::string&>(),
                            [](unsigned char c) { return c < ' ' || c == 0x7f; }))
      refuse(path, &value, "a text without control characters");
    return value.get<std::string>();
  }
  [[noreturn]] void refuse(const std::string& path,
                           const ordered_json* value,
                           std::string_view expected) const {
    std::string shown = "is missing";
    if (value) {
      shown = "= " + value->dump(-1, ' ', false, ordered_json::error_handler_t::replace);
      if (shown.size() > 60) shown = shown.substr(0, 57) + "...";
    }
    throw Error(Fault::data, "machine.profile",
                fmt::format("'{}': {} {}, expected {}", origin_, path.empty() ? "the whole" : path,
                            shown, expected),
                "`ferry doctor` measures this machine anew");
  }

  const ordered_json& object_;
  std::string path_;
  const std::string& origin_;
  std::vector<std::string_view> known_;
};

void check_version(const ordered_json& json, const std::string& origin) {
  const auto version = json.find("version");
  if (version != json.end() && version->is_number_integer() && *version == kVersion) return;
  if (version != json.end() && version->is_number_integer() && *version > kVersion)
    throw Error(
        Fault::data, "machine.profile",
        fmt::format("'{}' has version {}, and this ferry knows {}", origin, version->dump(),
                    kVersion),
        "it is a newer ferry's: use that one, or measure anew with this one's `ferry doctor`");
  if (version != json.end() && version->is_number_integer())
    throw Error(Fault::data, "machine.profile",
                fmt::format("'{}' has version {}: an older ferry measured otherwise", origin,
                            version->dump()),
                "`ferry doctor` measures this machine anew");
  throw Error(Fault::data, "machine.profile",
              fmt::format("'{}' is no machine profile: it has no version", origin),
              "`ferry doctor` measures this machine");
}

}  // namespace

MachineProfile parse_machine_profile(std::string_view json, const std::string& origin) {
  ordered_json object;
  try {
    object = ordered_json::parse(json);
  } catch (const ordered_json::exception& error) {
    throw Error(Fault::data, "machine.profile",
                fmt::format("'{}' is not valid JSON: {}", origin, error.what()),
                "`ferry doctor` measures this machine anew");
  }
  Reader reader(object, "", origin);
  check_version(object, origin);
  reader.knows("version");
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
