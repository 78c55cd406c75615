#include "src/cli/machine/profile_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "src/base/bytes.h"
#include "src/term/table.h"

namespace ferry::cli {

namespace {

using term::Align;
using term::Table;

std::string gb(double bytes_per_s) {
  return bytes_per_s > 0 ? fmt::format("{:.1f}", bytes_per_s / 1e9) : "-";
}
std::string params(double per_s) {
  return per_s > 0 ? fmt::format("{:.0f}", per_s / 1e6) : "-";
}
std::string tflops(double per_s) {
  const int n_decimals = per_s >= 9.95e12 ? 0 : per_s >= 0.995e12 ? 1 : 3;
  return fmt::format("{:.{}f}", per_s / 1e12, n_decimals);
}

const CopyRate* largest_copy(const GpuProfile& gpu) {
  return gpu.copies.empty() ? nullptr : &gpu.copies.back();
}

/** "bf16 745, fp32 48.2 TFLOP/s": the best of each type. */
std::string best_gemms(const std::vector<GemmRate>& gemms) {
  std::string text;
  for (const DType type : {DType::bf16, DType::f16, DType::f32}) {
    double best = 0;
    for (const GemmRate& gemm : gemms)
      if (gemm.type == type) best = std::max(best, gemm.flops_per_s);
    if (best > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name_of(type), tflops(best));
  }
  return text.empty() ? text : text + " TFLOP/s";
}

std::string memory_table(const MachineProfile& profile, const term::Terminal& terminal) {
  Table table({{"beside a plan"}, {"", Align::right}});
  bool has_row = false;
  const auto add = [&](const char* what, int64_t n_bytes) {
    if (n_bytes <= 0) return;
    table.add_row({what, format_bytes(n_bytes)});
    has_row = true;
  };
  add("training on the CPU: its process at the start", profile.host.process.at_start_bytes);
  add("what it takes later", profile.host.process.later_bytes);
  const GpuProfile gpu = profile.gpu.value_or(GpuProfile{});
  add("training on the GPU: its process at the start", gpu.process.at_start_bytes);
  add("what it takes later", gpu.process.later_bytes);
  add("GPU: the driver's context", gpu.kernels.loaded_bytes > 0 ? gpu.context_bytes : 0);
  add("GPU: kernels", gpu.kernels.loaded_bytes);
  add("GPU: more with heads wider than 64", gpu.kernels.wide_heads_bytes);
  add("GPU: more with rows of more than 8 KiB", gpu.kernels.wide_rows_bytes);
  add("GPU: a CUDA graph", gpu.kernels.graph_bytes);
  add("host: a CUDA graph", gpu.kernels.graph_host_bytes);
  return has_row ? table.text(terminal) : std::string();
}

std::string update_table(const HostProfile& host, const term::Terminal& terminal) {
  if (host.updates.empty()) return {};
  Table table({{"threads", Align::right},
               {"M parameters/s", Align::right},
               {"GB/s", Align::right},
               {"beside copies", Align::right},
               {"GB/s", Align::right},
               {"to the GPU", Align::right},
               {"back", Align::right}});
  for (const UpdateRate& rate : host.updates)
    table.add_row({std::to_string(rate.n_threads), params(rate.alone),
                   gb(rate.alone * kUpdateTraffic_bytes), params(rate.beside_copies),
                   gb(rate.beside_copies * kUpdateTraffic_bytes), gb(rate.h2d_beside),
                   gb(rate.d2h_beside)});
  return "AdamW on the CPU, 16-bit weights and gradients, fp32 states\n" + table.text(terminal);
}

std::string dram_table(const HostProfile& host, const term::Terminal& terminal) {
  if (host.dram_bytes_per_s <= 0) return {};
  Table table({{"host memory"}, {"GB/s", Align::right}});
  table.add_row({"three arrays changed in place", gb(host.dram_bytes_per_s)});
  if (host.memory_bytes_per_s > 0) table.add_row({"AdamW", gb(host.memory_bytes_per_s)});
  if (!host.updates.empty() && host.updates.back().beside_copies > 0) {
    const UpdateRate& rate = host.updates.back();
    const double update = rate.beside_copies * kUpdateTraffic_bytes;
    table.add_row({"AdamW beside copies both ways", gb(update)});
    table.add_row({"the same and the copies", gb(update + rate.h2d_beside + rate.d2h_beside)});
  }
  return table.text(terminal);
}

std::string copy_table(const MachineProfile& profile, const term::Terminal& terminal) {
  if (!profile.gpu || profile.gpu->copies.empty()) return {};
  Table table({{"one copy", Align::right},
               {"to the GPU", Align::right},
               {"back", Align::right},
               {"both: to", Align::right},
               {"both: back", Align::right}});
  for (const CopyRate& copy : profile.gpu->copies)
    table.add_row({format_bytes(copy.n_bytes), gb(copy.h2d), gb(copy.d2h), gb(copy.h2d_beside_d2h),
                   gb(copy.d2h_beside_h2d)});
  const int64_t pinned_bytes = profile.gpu->pinned_bytes_max;
  return fmt::format("copies of pinned memory{}, GB/s\n",
                     pinned_bytes > 0
                         ? fmt::format(" (the system pins {} at most)", format_bytes(pinned_bytes))
                         : "") +
         table.text(terminal);
}

std::string gpu_table(const MachineProfile& profile, const term::Terminal& terminal) {
  if (!profile.gpu || profile.gpu->memory_bytes_per_s <= 0) return {};
  const GpuProfile& gpu = *profile.gpu;
  Table table({{gpu.name}, {"", Align::right}});
  table.add_row({"element-wise kernels", gb(gpu.memory_bytes_per_s) + " GB/s"});
  table.add_row({"one launch after another", fmt::format("{:.1f} us", gpu.launch_s * 1e6)});
  table.add_row({"AdamW", params(gpu.update_params_per_s) + " M parameters/s"});
  return table.text(terminal);
}

/** A column for each width, a row for each type and number of rows. */
std::string gemm_table(std::string_view where,
                       const std::vector<GemmRate>& gemms,
                       const term::Terminal& terminal) {
  if (gemms.empty()) return {};
  std::vector<int64_t> widths;
  for (const GemmRate& gemm : gemms)
    if (std::find(widths.begin(), widths.end(), gemm.width) == widths.end())
      widths.push_back(gemm.width);
  std::vector<term::Column> columns = {{"type"}, {"rows", Align::right}};
  for (const int64_t width : widths)
    columns.push_back({fmt::format("width {}", width), Align::right});
  Table table(columns);
  std::vector<std::string> row;
  const auto ends_row = [&](size_t i) {
    return i + 1 == gemms.size() || gemms[i + 1].type != gemms[i].type ||
           gemms[i + 1].rows != gemms[i].rows;
  };
  for (size_t i = 0; i < gemms.size(); ++i) {
    if (row.empty()) {
      row.assign(columns.size(), "-");
      row[0] = name_of(gemms[i].type);
      row[1] = std::to_string(gemms[i].rows);
    }
    const auto column = std::find(widths.begin(), widths.end(), gemms[i].width) - widths.begin();
    row[static_cast<size_t>(column) + 2] = tflops(gemms[i].flops_per_s);
    if (!ends_row(i)) continue;
    table.add_row(row);
    row.clear();
  }
  return fmt::format("(rows, width) x (width, width) on the {}, TFLOP/s\n{}", where,
                     table.text(terminal));
}

std::string attention_table(std::string_view where,
                            const std::vector<AttentionRate>& attentions,
                            const term::Terminal& terminal) {
  if (attentions.empty()) return {};
  Table table({{"type"},
               {"backend"},
               {"length", Align::right},
               {"head width", Align::right},
               {"forward", Align::right},
               {"backward", Align::right}});
  for (const AttentionRate& rate : attentions)
    table.add_row({std::string(name_of(rate.type)), rate.backend, std::to_string(rate.length),
                   std::to_string(rate.head_width), tflops(rate.forward_flops_per_s),
                   tflops(rate.backward_flops_per_s)});
  return fmt::format("attention on the {}, dropout 0.1, TFLOP/s\n{}", where, table.text(terminal));
}

std::string disk_table(const DiskProfile& disk, const term::Terminal& terminal) {
  if (disk.write_bytes_per_s <= 0) return {};
  Table table({{disk.directory.empty() ? "disk" : disk.directory}, {"GB/s", Align::right}});
  table.add_row(
      {"written past the page cache", fmt::format("{:.2f}", disk.write_bytes_per_s / 1e9)});
  table.add_row({"read back", fmt::format("{:.2f}", disk.read_bytes_per_s / 1e9)});
  return table.text(terminal);
}

}  // namespace

std::vector<std::pair<std::string, std::string>> profile_summary(const MachineProfile& profile) {
  std::vector<std::pair<std::string, std::string>> rows;
  const HostProfile& host = profile.host;
  if (!host.updates.empty()) {
    const UpdateRate& all = host.updates.back();
    std::string text =
        fmt::format("{} M parameters/s with {} threads", params(all.alone), all.n_threads);
    if (all.beside_copies > 0) text += fmt::format(", {} beside copies", params(all.beside_copies));
    rows.emplace_back("AdamW", text);
  }
  if (host.dram_bytes_per_s > 0)
    rows.emplace_back("host memory",
                      fmt::format("{} GB/s; AdamW moves {}", gb(host.dram_bytes_per_s),
                                  gb(host.memory_bytes_per_s)));
  for (int i = 0; i < profile.n_gpus(); ++i) {
    const GpuProfile& gpu = profile.gpu_at(i);
    if (profile.has_unlike_gpus()) rows.emplace_back("figures of", gpu.name);
    if (const CopyRate* copy = largest_copy(gpu))
      rows.emplace_back(
          "copies", fmt::format("{} GB/s to the GPU, {} back; at once {} and {}", gb(copy->h2d),
                                gb(copy->d2h), gb(copy->h2d_beside_d2h), gb(copy->d2h_beside_h2d)));
    if (!gpu.gemms.empty()) rows.emplace_back("GEMM", best_gemms(gpu.gemms));
    if (gpu.memory_bytes_per_s > 0)
      rows.emplace_back("GPU memory", fmt::format("{} GB/s; a launch takes {:.1f} us",
                                                  gb(gpu.memory_bytes_per_s), gpu.launch_s * 1e6));
  }
  if (!host.gemms.empty()) rows.emplace_back("GEMM, CPU", best_gemms(host.gemms));
  if (profile.disk.write_bytes_per_s > 0)
    rows.emplace_back("disk", fmt::format("writes {:.2f} GB/s, reads {:.2f}",
                                          profile.disk.write_bytes_per_s / 1e9,
                                          profile.disk.read_bytes_per_s / 1e9));
  for (const NvmeProfile& nvme : profile.nvme)
    rows.emplace_back(
        "NVMe",
        fmt::format(
            "{}reads {:.2f} GB/s, writes {:.2f}; at once {:.2f} each way; a flush {:.1f} ms{}",
            nvme.directories.empty() ? "" : fmt::format("{}: ", fmt::join(nvme.directories, ", ")),
            nvme.read_bytes_per_s / 1e9, nvme.write_bytes_per_s / 1e9, nvme.mixed_bytes_per_s / 1e9,
            nvme.flush_s * 1e3,
            nvme.depth > 0 ? fmt::format("; in requests of {}, {} at once",
                                         format_bytes(nvme.request_bytes), nvme.depth)
                           : ""));
  return rows;
}

std::string profile_tables(std::string_view part,
                           const MachineProfile& profile,
                           const term::Terminal& terminal) {
  const HostProfile& host = profile.host;
  const GpuProfile gpu = profile.gpu.value_or(GpuProfile{});
  std::string text;
  const auto add = [&](std::string_view of, std::string table) {
    if (table.empty() || (part != "all" && part != of)) return;
    text += (text.empty() ? "" : "\n") + std::move(table);
  };
  add("memory", memory_table(profile, terminal));
  add("adamw", update_table(host, terminal));
  add("dram", dram_table(host, terminal));
  add("copy", copy_table(profile, terminal));
  add("gpu", gpu_table(profile, terminal));
  add("gemm", gemm_table("GPU", gpu.gemms, terminal));
  add("gemm", gemm_table("CPU", host.gemms, terminal));
  add("attention", attention_table("GPU", gpu.attentions, terminal));
  add("attention", attention_table("CPU", host.attentions, terminal));
  add("disk", disk_table(profile.disk, terminal));
  return text;
}

}  // namespace ferry::cli
