#include "gui/models/machine/doctor_thread.h"

#include <QLocale>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "gui/models/runs/run_words.h"
#include "gui/models/text.h"

namespace ferry::gui {

namespace {

QString number(double value, int n_decimals) {
  return QLocale::c().toString(value, 'f', n_decimals);
}

QString gb(double per_s) {
  return number(per_s / 1e9, 1);
}

/** "bf16 745, fp32 48.2 TFLOP/s": the best of each type. */
QString best_gemms(const std::vector<GemmRate>& gemms) {
  QStringList parts;
  for (const DType type : {DType::bf16, DType::f16, DType::f32}) {
    double best = 0;
    for (const GemmRate& gemm : gemms)
      if (gemm.type == type) best = std::max(best, gemm.flops_per_s);
    if (best > 0)
      parts << QStringLiteral("%1 %2").arg(to_text(name_of(type)),
                                           number(best / 1e12, best < 1e12 ? 3 : 1));
  }
  return parts.isEmpty() ? QString()
                         : QStringLiteral("%1 TFLOP/s").arg(parts.join(QStringLiteral(", ")));
}

}  // namespace

DoctorThread::DoctorThread(QObject* parent) : QObject(parent), worker_(this) {}

DoctorThread::~DoctorThread() {
  stop_.request_stop();
}

double DoctorThread::measuring_s() const {
  return is_measuring_ ? static_cast<double>(since_.elapsed()) / 1000 : 0;
}

void DoctorThread::look() {
  if (is_measuring_) return;
  post(/*measures=*/false);
}

void DoctorThread::measure() {
  if (is_measuring_) return;
  is_measuring_ = true;
  since_.start();
  stop_ = std::stop_source();
  post(/*measures=*/true);
}

void DoctorThread::cancel() {
  if (is_measuring_) stop_.request_stop();
}

void DoctorThread::post(bool measures) {
  is_waiting_ = true;
  worker_.post([this, measures, stop = stop_.get_token()](const LatestWorker::Turn& turn) {
    auto report = std::make_shared<DoctorReport>();
    try {
      report->facts = service::read_facts();
      if (measures) report->measured = service::measure_and_store(report->facts, "", stop);
      if (measures && stop.stop_requested()) {
        report->facts = service::read_facts();
        report->measured = {};
      }
      if (!measures || stop.stop_requested()) service::load_profile(report->facts);
      report->findings = service::diagnose(report->facts);
      report->models = models_here();
    } catch (const std::exception& error) {
      report->findings = {{service::Severity::error, error.what(), {}}};
    }
    report->is_usable = service::is_usable(report->findings);
    turn.deliver([this, report] {
      is_measuring_ = is_waiting_ = false;
      emit looked(report);
    });
  });
}

std::vector<std::pair<QString, QString>> fact_rows(const service::Facts& facts) {
  const service::Host& host = facts.host;
  const HostMemory& memory = facts.memory;
  const service::Nvidia& nvidia = facts.nvidia;
  std::vector<std::pair<QString, QString>> rows;
  for (const service::Gpu& gpu : nvidia.gpus)
    rows.emplace_back(
        DoctorThread::tr("GPU"),
        (gpu.drives_display ? DoctorThread::tr("%1, %2 free of %3, sm_%4, drives the display")
                            : DoctorThread::tr("%1, %2 free of %3, sm_%4"))
            .arg(isolated(to_text(gpu.name)), bytes_text(gpu.memory_free_bytes),
                 bytes_text(gpu.memory_total_bytes))
            .arg(gpu.compute_capability));
  if (nvidia.gpus.empty()) rows.emplace_back(DoctorThread::tr("GPU"), DoctorThread::tr("none"));
  rows.emplace_back(DoctorThread::tr("NVIDIA driver"),
                    nvidia.driver_version.empty()
                        ? DoctorThread::tr("none")
                        : DoctorThread::tr("%1, CUDA %2.%3")
                              .arg(isolated(to_text(nvidia.driver_version)))
                              .arg(nvidia.cuda_version / 1000)
                              .arg(nvidia.cuda_version % 1000 / 10));
  rows.emplace_back(DoctorThread::tr("Processor"), DoctorThread::tr("%1, %2 cores, %3 threads")
                                                       .arg(isolated(to_text(host.cpu)))
                                                       .arg(host.n_cores)
                                                       .arg(host.n_threads));
  rows.emplace_back(DoctorThread::tr("CPU kernels"), facts.simd_level.empty()
                                                         ? DoctorThread::tr("none")
                                                         : to_text(facts.simd_level));
  rows.emplace_back(DoctorThread::tr("Memory"),
                    DoctorThread::tr("%1 available of %2; a run may take %3")
                        .arg(bytes_text(memory.available_bytes), bytes_text(memory.total_bytes),
                             bytes_text(memory.budget_bytes())));
  rows.emplace_back(DoctorThread::tr("Memory limits"),
                    DoctorThread::tr("control group %1, locked memory %2")
                        .arg(memory.cgroup_limit_bytes ? bytes_text(*memory.cgroup_limit_bytes)
                                                       : DoctorThread::tr("none"),
                             host.memlock_limit_bytes ? bytes_text(*host.memlock_limit_bytes)
                                                      : DoctorThread::tr("none")));
  rows.emplace_back(DoctorThread::tr("Swap"), host.swap_total_bytes == 0
                                                  ? DoctorThread::tr("none")
                                                  : DoctorThread::tr("%1 free of %2")
                                                        .arg(bytes_text(host.swap_free_bytes),
                                                             bytes_text(host.swap_total_bytes)));
  rows.emplace_back(DoctorThread::tr("Disk here"),
                    DoctorThread::tr("%1 free of %2")
                        .arg(bytes_text(host.disk_free_bytes), bytes_text(host.disk_total_bytes)));
  rows.emplace_back(
      DoctorThread::tr("System"),
      (host.is_wsl ? DoctorThread::tr("%1, Linux %2 (WSL)") : DoctorThread::tr("%1, Linux %2"))
          .arg(isolated(to_text(host.distribution)), isolated(to_text(host.kernel))));
  rows.emplace_back(DoctorThread::tr("Trainer"),
                    facts.trainer ? path_text(*facts.trainer) : DoctorThread::tr("not found"));
  rows.emplace_back(DoctorThread::tr("Presets"), DoctorThread::tr("%1, %2 of them fit this machine")
                                                     .arg(facts.presets.size())
                                                     .arg(facts.presets_here.size()));
  return rows;
}

std::vector<std::pair<QString, QString>> profile_rows(const MachineProfile& profile) {
  std::vector<std::pair<QString, QString>> rows;
  const HostProfile& host = profile.host;
  if (profile.gpu) {
    const GpuProfile& gpu = *profile.gpu;
    if (!gpu.gemms.empty())
      rows.emplace_back(DoctorThread::tr("Products, GPU"), best_gemms(gpu.gemms));
    if (!gpu.copies.empty()) {
      const CopyRate& copy = gpu.copies.back();
      rows.emplace_back(
          DoctorThread::tr("Copies"),
          DoctorThread::tr("%1 GB/s to the GPU, %2 back; at once %3 and %4")
              .arg(gb(copy.h2d), gb(copy.d2h), gb(copy.h2d_beside_d2h), gb(copy.d2h_beside_h2d)));
    }
    if (gpu.memory_bytes_per_s > 0)
      rows.emplace_back(DoctorThread::tr("GPU memory"),
                        DoctorThread::tr("%1 GB/s; a launch takes %2 \u00b5s")
                            .arg(gb(gpu.memory_bytes_per_s), number(gpu.launch_s * 1e6, 1)));
  }
  if (!host.updates.empty()) {
    const UpdateRate& all = host.updates.back();
    rows.emplace_back(DoctorThread::tr("AdamW"),
                      DoctorThread::tr("%1 M parameters/s with %2 threads")
                          .arg(number(all.alone / 1e6, 0))
                          .arg(all.n_threads));
  }
  if (host.dram_bytes_per_s > 0)
    rows.emplace_back(DoctorThread::tr("Host memory"),
                      DoctorThread::tr("%1 GB/s; AdamW moves %2")
                          .arg(gb(host.dram_bytes_per_s), gb(host.memory_bytes_per_s)));
  if (!host.gemms.empty())
    rows.emplace_back(DoctorThread::tr("Products, CPU"), best_gemms(host.gemms));
  if (profile.disk.write_bytes_per_s > 0)
    rows.emplace_back(DoctorThread::tr("Disk"),
                      DoctorThread::tr("writes %1 GB/s, reads %2")
                          .arg(number(profile.disk.write_bytes_per_s / 1e9, 2),
                               number(profile.disk.read_bytes_per_s / 1e9, 2)));
  for (const NvmeProfile& nvme : profile.nvme)
    rows.emplace_back(
        DoctorThread::tr("NVMe"),
        DoctorThread::tr("reads %1 GB/s, writes %2; at once %3 each way")
            .arg(number(nvme.read_bytes_per_s / 1e9, 2), number(nvme.write_bytes_per_s / 1e9, 2),
                 number(nvme.mixed_bytes_per_s / 1e9, 2)));
  return rows;
}

QString report_text(const DoctorReport& report) {
  service::Facts facts = report.facts;
  if (facts.profile) service::hide_places(*facts.profile);
  const auto json = service::to_json(facts, report.findings, report.measured);
  return to_text(json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

}  // namespace ferry::gui
