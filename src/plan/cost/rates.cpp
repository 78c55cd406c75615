#include "src/plan/cost/rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace ferry {
namespace {

/** y at x on the line through two points of a function that is smooth in the logarithms. */
double between(double x, double x0, double y0, double x1, double y1) {
  if (x0 == x1) return y0;
  const double t = (std::log(x) - std::log(x0)) / (std::log(x1) - std::log(x0));
  return std::exp(std::log(y0) + std::clamp(t, 0.0, 1.0) * (std::log(y1) - std::log(y0)));
}

/** Values of the member, ascending, each once. */
template <class Item, class Member>
std::vector<Member> axis_of(const std::vector<Item>& items, Member Item::*member) {
  std::vector<Member> values;
  for (const Item& item : items)
    values.push_back(item.*member);
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

/** The neighbours of x on an ascending axis; both the same at its ends. */
template <class T>
std::pair<T, T> around(const std::vector<T>& axis, double x) {
  const auto above =
      std::ranges::find_if(axis, [&](T value) { return static_cast<double>(value) >= x; });
  if (above == axis.begin()) return {axis.front(), axis.front()};
  if (above == axis.end()) return {axis.back(), axis.back()};
  return {*(above - 1), *above};
}

std::vector<GemmRate> of_type(const std::vector<GemmRate>& rates, DType type) {
  std::vector<GemmRate> found;
  std::ranges::copy_if(rates, std::back_inserter(found),
                       [&](const GemmRate& rate) { return rate.type == type; });
  return found;
}

/** Between ranks, assumed until a machine is measured for it. Two H100 without peer access send
 * each other 24 GB/s through host memory, where copies reach 53. Processes of a CPU send through
 * sockets of the host. Hosts have a network of 10 Gbit/s. */
constexpr double kExchange_s = 20e-6, kExchangeOfCopies = 0.45, kExchange_bytes_per_s = 24e9;
constexpr double kSocket_s = 200e-6, kSocket_bytes_per_s = 1e9;
constexpr double kNetwork_s = 100e-6, kNetwork_bytes_per_s = 1.25e9;

}  // namespace

double gemm_rate(const std::vector<GemmRate>& all, DType type, const BlockWork::Product& product) {
  const std::vector<GemmRate> rates = of_type(all, type);
  if (rates.empty()) return 0;
  // The largest extent is the rows of a measured product, whichever of the three it is here.
  std::array<double, 3> extents = {static_cast<double>(product.rows),
                                   static_cast<double>(product.inner),
                                   static_cast<double>(product.columns)};
  std::ranges::sort(extents);
  const double rows = extents[2], width = std::sqrt(extents[0] * extents[1]);
  const auto [fewer, more] = around(axis_of(rates, &GemmRate::rows), rows);
  const auto at_rows = [&](int64_t n) {
    std::vector<GemmRate> line;
    std::ranges::copy_if(rates, std::back_inserter(line),
                         [&](const GemmRate& rate) { return rate.rows == n; });
    const auto [narrow, wide] = around(axis_of(line, &GemmRate::width), width);
    const auto rate_at = [&](int64_t w) {
      return std::ranges::find(line, w, &GemmRate::width)->flops_per_s;
    };
    double rate = between(width, static_cast<double>(narrow), rate_at(narrow),
                          static_cast<double>(wide), rate_at(wide));
    // Narrower than anything measured: the operands' bytes are what takes time.
    if (width < static_cast<double>(narrow)) rate *= width / static_cast<double>(narrow);
    return rate;
  };
  double rate = between(rows, static_cast<double>(fewer), at_rows(fewer), static_cast<double>(more),
                        at_rows(more));
  if (rows < static_cast<double>(fewer)) rate *= rows / static_cast<double>(fewer);
  return rate;
}

double attention_rate(const std::vector<AttentionRate>& all,
                      const ModelTable& model,
                      int64_t length,
                      bool backward) {
  const int64_t head_width = model.head_width;
  std::vector<AttentionRate> found;
  for (const AttentionRate& rate : all)
    if (rate.type == model.compute && rate.backend == name_of(model.attention))
      found.push_back(rate);
  if (found.empty()) return 0;
  const auto distance = [&](const AttentionRate& rate) {
    return std::abs(
        std::log(static_cast<double>(rate.head_width) / static_cast<double>(head_width)));
  };
  const double nearest = distance(*std::ranges::min_element(found, {}, distance));
  std::erase_if(found, [&](const AttentionRate& rate) { return distance(rate) > nearest; });
  const auto [short_length, long_length] =
      around(axis_of(found, &AttentionRate::length), static_cast<double>(length));
  // Narrower heads than measured leave tiles of the products half empty; flash has tiles for them.
  const double narrow =
      model.attention == AttentionBackend::flash
          ? 1.0
          : std::min(1.0, std::sqrt(static_cast<double>(head_width) /
                                    static_cast<double>(found.front().head_width)));
  const auto rate_at = [&](int64_t at) {
    const auto& rate = *std::ranges::find(found, at, &AttentionRate::length);
    return narrow * (backward ? rate.backward_flops_per_s : rate.forward_flops_per_s);
  };
  return between(static_cast<double>(length), static_cast<double>(short_length),
                 rate_at(short_length), static_cast<double>(long_length), rate_at(long_length));
}

std::vector<int64_t> sizes_of(const std::vector<CopyRate>& rates) {
  return axis_of(rates, &CopyRate::n_bytes);
}

double copy_rate(const std::vector<CopyRate>& rates,
                 const std::vector<int64_t>& sizes,
                 bool to_gpu,
                 double n_bytes) {
  const auto [small, large] = around(sizes, n_bytes);
  const auto rate_at = [&](int64_t n) {
    const CopyRate& rate = *std::ranges::find(rates, n, &CopyRate::n_bytes);
    return to_gpu ? rate.h2d : rate.d2h;
  };
  // A smaller copy than measured takes as long as its bytes and its start.
  if (n_bytes < static_cast<double>(small)) return rate_at(rates.back().n_bytes);
  return between(n_bytes, static_cast<double>(small), rate_at(small), static_cast<double>(large),
                 rate_at(large));
}

namespace {

/** Assumes what the profile does not tell. `gpu`: null for processes of the CPU. */
ExchangeProfile whole_exchange(const std::optional<ExchangeProfile>& known,
                               const GpuProfile* gpu,
                               int n_of_host) {
  ExchangeProfile exchange = known.value_or(ExchangeProfile{});
  const auto assume = [](double& figure, double assumed) {
    if (figure <= 0) figure = assumed;
  };
  const double copies = gpu && !gpu->copies.empty() ? gpu->copies.back().h2d : 0;
  const double through_memory = copies > 0 ? kExchangeOfCopies * copies : kExchange_bytes_per_s;
  assume(exchange.bytes_per_s, gpu ? through_memory : kSocket_bytes_per_s);
  assume(exchange.message_s, gpu ? kExchange_s : kSocket_s);
  assume(exchange.network_bytes_per_s, kNetwork_bytes_per_s / n_of_host);
  assume(exchange.network_message_s, kNetwork_s);
  return exchange;
}

}  // namespace

ExchangeProfile exchange_rates(const MachineProfile& machine, bool gpu, int n_of_host) {
  if (!gpu) return whole_exchange(machine.host.exchange, nullptr, n_of_host);
  ExchangeProfile slowest = whole_exchange(machine.gpu->exchange, &*machine.gpu, n_of_host);
  for (const GpuProfile& other : machine.other_gpus) {
    const ExchangeProfile its = whole_exchange(other.exchange, &other, n_of_host);
    slowest.has_peer_access = slowest.has_peer_access && its.has_peer_access;
    slowest.bytes_per_s = std::min(slowest.bytes_per_s, its.bytes_per_s);
    slowest.message_s = std::max(slowest.message_s, its.message_s);
    slowest.network_bytes_per_s = std::min(slowest.network_bytes_per_s, its.network_bytes_per_s);
    slowest.network_message_s = std::max(slowest.network_message_s, its.network_message_s);
  }
  return slowest;
}

namespace {

std::string missing_figures_of_gpu(const GpuProfile& gpu) {
  if (gpu.copies.empty()) return "rates of copies";
  if (gpu.memory_bytes_per_s <= 0 || gpu.update_params_per_s <= 0)
    return "the rate of the GPU's memory";
  return gpu.launch_s <= 0 ? "what a launch takes" : "";
}

/** Products and attention in the model's type. */
std::string missing_work_rates(const std::vector<GemmRate>& gemms,
                               const std::vector<AttentionRate>& attentions,
                               const ModelTable& model) {
  if (of_type(gemms, model.compute).empty())
    return fmt::format("rates of {} products", name_of(model.compute));
  const bool has_attention = std::ranges::any_of(attentions, [&](const AttentionRate& rate) {
    return rate.type == model.compute && rate.backend == name_of(model.attention);
  });
  return has_attention ? ""
                       : fmt::format("rates of {} attention in {}", name_of(model.attention),
                                     name_of(model.compute));
}

}  // namespace

std::string missing_figures(const MachineProfile& machine,
                            bool gpu,
                            const ModelTable& model,
                            bool nvme) {
  if (gpu && !machine.gpu) return "figures of a GPU";
  std::string missing =
      gpu ? missing_work_rates(machine.gpu->gemms, machine.gpu->attentions, model)
          : missing_work_rates(machine.host.gemms, machine.host.attentions, model);
  if (!missing.empty()) return missing;
  if (machine.host.updates.empty()) return "the rate of AdamW on the CPU";
  if (gpu) missing = missing_figures_of_gpu(*machine.gpu);
  if (!missing.empty()) return missing;
  for (const GpuProfile& other : machine.other_gpus) {
    if (!gpu) break;
    missing = missing_work_rates(other.gemms, other.attentions, model);
    if (missing.empty()) missing = missing_figures_of_gpu(other);
    if (!missing.empty()) return fmt::format("{} of the {}", missing, other.name);
  }
  if (!gpu && machine.host.memory_bytes_per_s <= 0) return "the rate of the host's memory";
  if (nvme && (machine.nvme.empty() || machine.nvme.front().read_bytes_per_s <= 0 ||
               machine.nvme.front().write_bytes_per_s <= 0))
    return "the rates of the NVMe drive";
  return "";
}

}  // namespace ferry
