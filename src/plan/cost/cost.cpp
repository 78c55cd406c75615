#include "src/plan/cost/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "offload/step/layout.h"
#include "offload/step/ring_size.h"
#include "src/base/error.h"
#include "src/plan/cost/rates.h"
#include "src/plan/machine/host_share.h"

namespace ferry {
namespace {

/** A copy's start, seen on the queue: event, launch. */
constexpr double kCopyStart_s = 5e-6;
/** A decision and the wake-up of who waits for it; the pool's wake-up for a host action, and its
 * last worker's end. */
constexpr double kDecision_s = 60e-6, kHostAction_s = 60e-6;
/** The wake-up of the thread that fills or empties a ring for an action, and of its helpers for a
 * chunk: assumed. */
constexpr double kRingAction_s = 50e-6, kRingChunk_s = 15e-6;
/** Traffic of host memory for each byte that a thread copies between a slot and other memory: read,
 * fetched to be written, written (H100, 16 cores, 4 threads each way: 20 GB/s both ways at once).
 */
constexpr double kRingTraffic_bytes = 3;
/** Updates lose speed beside copies both ways. These are the shares of that loss beside copies to
 * the GPU alone and beside copies from it alone: DMA writes cost the memory more than reads (H200,
 * 16 cores: 4,471 M parameters/s alone, 3,870 and 3,337 beside one way, 3,071 beside both). */
constexpr double kTakenByH2d = 0.45, kTakenByD2h = 0.8;
/** The host's time for LibTorch's own work, counted in launches: an operation takes 26 us and a
 * product 46, where a bare launch takes 3.7 (the host of an H200). */
constexpr double kOperation_launches = 7, kProduct_launches = 12;
/** The same for a pass through attention, with its allocations and results (0.2 ms there). */
constexpr double kAttention_launches = 52;
/** The host's time for what ranks send each other at once. NCCL hands the calls of a communicator
 * that does not block to another thread (145 to 160 us on the host of two H200). */
constexpr double kMessage_s = 150e-6;
/** The time of a kernel, however little it does (H200, in a CUDA graph: the 37 kernels of a layer
 * of 256 tokens, forward and backward with products, take 0.17 ms). A graph has two launches: the
 * random keys and itself. */
constexpr double kKernel_s = 3e-6;
constexpr int kGraphLaunches = 2;
/** Pairs of tokens whose rows a GPU compares in a second: three instructions each, 32 a clock and
 * multiprocessor (H100's 132 at 1.7 GHz). */
constexpr double kPairs_per_s = 7.4e12;
/** The kernels of a square sum on the GPU, and their time beside reading the gradients. */
constexpr int kSquareSumKernels = 3;
constexpr double kSquareSum_s = 15e-6;
/** The time until the first bytes of a piece of states come from a drive, or are taken by it:
 * assumed, as are the flushes of one that says nothing of them. A commit has two of these (store.md
 * in offload/store). */
constexpr double kDriveStart_s = 100e-6, kFlush_s = 5e-3;
constexpr int kCommitFlushes = 2;

/** `with` of `alone`; what was not measured slows nothing down. */
double ratio(double with, double alone) {
  return with > 0 && alone > 0 ? std::min(1.0, with / alone) : 1.0;
}

/** The number of launches that take as long as the pass's work on the host. */
double launches_of(const BlockWork& work) {
  const auto n_products = static_cast<double>(work.products.size());
  const double n_own = std::max(0.0, work.n_kernels - work.n_operations - n_products);
  return n_products * kProduct_launches + work.n_operations * kOperation_launches + n_own +
         (work.attention_tokens > 0 ? kAttention_launches : 0);
}

/** Releasing bytes takes no time. */
int64_t bytes_of(const std::vector<Bytes>& all) {
  int64_t n_bytes = 0;
  for (const Bytes& bytes : all)
    n_bytes += bytes.role == Role::dead ? 0 : bytes.n_bytes;
  return n_bytes;
}
int64_t bytes_of(const std::vector<Bytes>& all, Role role) {
  int64_t n_bytes = 0;
  for (const Bytes& bytes : all)
    n_bytes += bytes.role == role ? bytes.n_bytes : 0;
  return n_bytes;
}

std::optional<MachineProfile> share_for_ranks(const MachineProfile& machine,
                                              bool gpu,
                                              const StepShape& shape) {
  if (shape.n_ranks_of_host() == 1) return std::nullopt;
  return share_of_host(machine, shape.n_ranks_of_host(), gpu);
}

}  // namespace

CostModel::CostModel(const MachineProfile& machine,
                     bool gpu,
                     const ModelTable& model,
                     const StepShape& shape,
                     const BatchShape& batch)
    : share_(share_for_ranks(machine, gpu, shape)),
      machine_(share_ ? *share_ : machine),
      gpu_(gpu),
      model_(model),
      shape_(shape),
      batch_(batch) {
  FERRY_CHECK(!gpu || machine.gpu, "a profile without a GPU");
  if (gpu) copy_sizes_ = sizes_of(machine.gpu->copies);
  if (gpu && !machine.gpu->copies.empty()) link_ = machine.gpu->copies.back();
  exchange_ = exchange_rates(machine, gpu, shape.n_ranks_of_host());
  ring_slot_bytes_ = ring_size(shape.pinned_bytes_max).slot_bytes;
  const HostProfile& host = machine_.host;
  const int n_threads = host.n_threads;
  if (!host.updates.empty())
    n_ring_threads_ = ring_threads(n_threads > 0 ? n_threads : host.updates.back().n_threads);
  ring_bytes_per_s_ = host_traffic(n_ring_threads_) / kRingTraffic_bytes;
  for (const UpdateRate& rate : host.updates) {
    // The thread that submits the GPU's work has a core of its own; the profile's workers had all
    // cores. A rank's share of a host leaves that core out already.
    const double workers = std::max(1, rate.n_threads);
    const double share = gpu && workers > 1 && !share_ ? (workers - 1) / workers : 1;
    if (rate.alone * share > update_alone_) {
      update_alone_ = rate.alone * share;
      n_update_threads_ = std::max(1.0, workers * share);
      update_beside_ = (rate.beside_copies > 0 ? rate.beside_copies : rate.alone) * share;
    }
  }
  // Most layers are like the one before, and rates are looked up in long tables.
  std::array<BlockWork, 3> before;
  for (size_t b = 0; b < model.blocks.size(); ++b) {
    const BlockTable& table = model.blocks[b];
    std::array<BlockWork, 3> works = {
        table.work(batch, false), table.work(batch, true),
        table.recompute_work ? table.recompute_work(batch) : BlockWork()};
    if (b > 0 && table.kind == model.blocks[b - 1].kind && works == before) {
      passes_.push_back(passes_.back());
      continue;
    }
    const int block = static_cast<int>(b);
    std::array<PassTimes, 3> passes;
    for (int kind : {kForward, kBackward, kRemake})
      passes[static_cast<size_t>(kind)] = pass_of(block, works[static_cast<size_t>(kind)], kind);
    passes_.push_back(passes);
    before = std::move(works);
  }
}

CostModel::PassTimes CostModel::pass_of(int block, const BlockWork& work, int kind) const {
  const double seconds = work_seconds(work, kind == kBackward);
  if (!gpu_) return {.launched = {seconds}, .replayed = {}};
  const double launch_s = machine_.gpu->launch_s;
  PassTimes times;
  const double n_kernels = work.n_kernels;
  times.launched = {std::max(seconds, n_kernels * kKernel_s),
                    {launches_of(work) * launch_s, n_kernels}};
  if (kind == kRemake || !runs_as_graph(model_, block, batch_, kind == kBackward)) return times;
  // The rates of products and flash attention are those of graphs, too.
  const double n_others =
      work.n_kernels - static_cast<double>(work.products.size()) - (work.attention_tokens > 0);
  times.replayed = {seconds + std::max(0.0, n_others) * kKernel_s,
                    {kGraphLaunches * launch_s, kGraphLaunches}};
  return times;
}

const CostModel::PassTimes* CostModel::times_of_again(int block, Activations activations) const {
  return activations == Activations::recompute   ? &times_of(block, kForward)
         : activations == Activations::selective ? &times_of(block, kRemake)
                                                 : nullptr;
}

const CostModel::PassTimes* CostModel::times_of(const Action& action) const {
  switch (action.verb) {
    case Verb::forward:
      return &times_of(action.block, kForward);
    case Verb::backward:
      return &times_of(action.block, kBackward);
    case Verb::recompute:
      return times_of_again(action.block, shape_.blocks[action.block].activations);
    default:
      return nullptr;
  }
}

bool CostModel::may_be_replayed(const Action& action) const {
  const PassTimes* times = times_of(action);
  return times && times->replayed;
}

CostModel::Pass CostModel::pass(const Action& action, double replayed) const {
  const PassTimes* times = times_of(action);
  if (!times) return {};
  const Pass& launched = times->launched;
  if (!times->replayed) return launched;
  const auto between = [&](double of_launched, double of_replayed) {
    return of_launched + replayed * (of_replayed - of_launched);
  };
  const Submission &each = launched.submission, &one = times->replayed->submission;
  return {between(launched.seconds, times->replayed->seconds),
          {between(each.seconds, one.seconds), between(each.n_launches, one.n_launches)}};
}

double CostModel::work_seconds(const BlockWork& work, bool backward) const {
  const auto& gemms = gpu_ ? machine_.gpu->gemms : machine_.host.gemms;
  const auto& attentions = gpu_ ? machine_.gpu->attentions : machine_.host.attentions;
  const double memory = gpu_ ? machine_.gpu->memory_bytes_per_s : machine_.host.memory_bytes_per_s;
  double seconds = memory > 0 ? static_cast<double>(work.memory_bytes) / memory : 0;
  if (gpu_) seconds += static_cast<double>(work.compared_pairs) / kPairs_per_s;
  for (const BlockWork::Product& product : work.products)
    if (const double rate = gemm_rate(gemms, model_.compute, product); rate > 0)
      seconds += product.flops() / rate;
  if (work.attention_tokens > 0)
    if (const double rate = attention_rate(attentions, model_, work.attention_length, backward);
        rate > 0)
      seconds += work.attention_flops(backward) / rate;
  const bool is_of_host = shape_.n_ranks_of_host() % shape_.ranks.sharing.n_ranks() == 0;
  if (const double rate = is_of_host ? exchange_.bytes_per_s : exchange_.network_bytes_per_s;
      work.exchanged_bytes > 0 && rate > 0)
    seconds += static_cast<double>(work.exchanged_bytes) / rate;
  return seconds;
}

double CostModel::copy_seconds(bool to_gpu, int64_t n_bytes) const {
  if (copy_sizes_.empty() || n_bytes <= 0) return kCopyStart_s;
  const auto size = static_cast<double>(n_bytes);
  return kCopyStart_s + size / copy_rate(machine_.gpu->copies, copy_sizes_, to_gpu, size);
}

/** The threads' copies go on beside the link's: the slower of the two takes its time for all, the
 * other one for a chunk. */
double CostModel::ring_seconds(bool to_gpu, int64_t n_bytes) const {
  if (n_bytes <= 0) return 0;
  const int64_t chunk_bytes_max = ring_chunk_bytes(n_bytes, ring_slot_bytes_);
  const int64_t n_all = (n_bytes + chunk_bytes_max - 1) / chunk_bytes_max;
  const int64_t chunk_bytes = n_bytes / n_all;  // the last one is smaller than the others
  const auto n_chunks = static_cast<double>(n_all);
  const double n_threads = n_chunks > 1 ? n_ring_threads_ : 1;
  const double link_s = copy_seconds(to_gpu, chunk_bytes);
  double thread_s = kRingChunk_s;  // a chunk of one of the threads
  if (ring_bytes_per_s_ > 0)
    thread_s += static_cast<double>(chunk_bytes) / (ring_bytes_per_s_ / n_ring_threads_);
  return kRingAction_s +
         std::max(n_chunks * link_s + thread_s, n_chunks / n_threads * thread_s + link_s);
}

double CostModel::move_seconds(const Action& action, int64_t ring_bytes) const {
  const int64_t n_bytes = bytes_of(action.reads);
  if (gpu_ && ring_bytes > 0) {
    const bool to_gpu = action.queue == QueueId::h2d;
    const int64_t direct_bytes = std::max<int64_t>(0, n_bytes - ring_bytes);
    return (direct_bytes > 0 ? copy_seconds(to_gpu, direct_bytes) : 0) +
           ring_seconds(to_gpu, ring_bytes);
  }
  if (action.verb == Verb::send_step_sums) return gpu_ ? kCopyStart_s : 0;
  // Moves between the places are copies within memory where there is no GPU.
  return gpu_ ? copy_seconds(action.queue == QueueId::h2d, n_bytes)
              : host_pass_seconds(2 * static_cast<double>(n_bytes));
}

double CostModel::drive_seconds(const Action& action) const {
  FERRY_CHECK(!machine_.nvme.empty(), "a profile without a drive");
  const NvmeProfile& drive = machine_.nvme.front();
  if (action.verb == Verb::commit)
    return kCommitFlushes * (drive.flush_s > 0 ? drive.flush_s : kFlush_s);
  const bool reads = action.queue == QueueId::nvme_read;
  const auto n_bytes = static_cast<double>(bytes_of(reads ? action.writes : action.reads));
  return kDriveStart_s + n_bytes / (reads ? drive.read_bytes_per_s : drive.write_bytes_per_s);
}

double CostModel::exchange_seconds(const Action& action, int rank) const {
  struct Crossing {
    double sent_bytes = 0, received_bytes = 0;
    double seconds(double start_s, double rate) const {
      const double most_bytes = std::max(sent_bytes, received_bytes);
      return most_bytes > 0 ? start_s + most_bytes / rate : 0;
    }
  } within, between;  // a host, hosts
  const auto add = [&](const Bytes& bytes, double Crossing::*way) {
    // A value never stays on a rank, whichever gives it.
    if (bytes.peer == rank && action.verb != Verb::pass_value) return;
    const bool is_near = bytes.peer < 0 || shape_.are_of_one_host(bytes.peer, rank);
    Crossing& crossing = is_near ? within : between;
    crossing.*way += static_cast<double>(bytes.n_bytes);
  };
  for (const Bytes& bytes : action.reads)
    add(bytes, &Crossing::sent_bytes);
  for (const Bytes& bytes : action.writes)
    if (bytes.peer >= 0) add(bytes, &Crossing::received_bytes);
  return std::max({exchange_.message_s, within.seconds(exchange_.message_s, exchange_.bytes_per_s),
                   between.seconds(exchange_.network_message_s, exchange_.network_bytes_per_s)});
}

int64_t CostModel::n_trained_tensors(int block) const {
  return std::ranges::count_if(shape_.blocks[block].tensors, &TensorExtent::trainable);
}

double CostModel::host_pass_seconds(double n_bytes) const {
  return kHostAction_s + (update_alone_ > 0 ? n_bytes / kUpdateTraffic_bytes / update_alone_ : 0);
}

double CostModel::arithmetic_seconds(const Action& action, double n_bytes) const {
  if (action.queue != QueueId::compute || !gpu_) return host_pass_seconds(n_bytes);
  const auto at_rate = [](double n, double rate) { return rate > 0 ? n / rate : 0; };
  if (action.verb == Verb::update)
    return static_cast<double>(n_trained_tensors(action.block)) * kKernel_s +
           at_rate(n_bytes / kUpdateTraffic_bytes, machine_.gpu->update_params_per_s);
  return at_rate(n_bytes, machine_.gpu->memory_bytes_per_s) +
         (action.verb == Verb::square_sum ? kSquareSum_s : 0);
}

double CostModel::seconds(const Action& action,
                          double replayed,
                          int64_t ring_bytes,
                          int rank) const {
  if (is_move(action.verb)) return move_seconds(action, ring_bytes);
  if (is_pass(action.verb)) {
    const double seconds = pass(action, replayed).seconds;
    const int64_t sum_bytes = bytes_of(action.writes, Role::sum);
    if (sum_bytes == 0) return seconds;
    return seconds + arithmetic_seconds(
                         action, static_cast<double>(sum_bytes + bytes_of(action.reads, Role::sum) +
                                                     bytes_of(action.writes, Role::grads)));
  }
  if (is_on_drive(action.queue)) return drive_seconds(action);
  if (is_between_ranks(action.verb)) return exchange_seconds(action, rank);
  if (action.verb == Verb::decide) return gpu_ ? kDecision_s : 0;
  return arithmetic_seconds(action,
                            static_cast<double>(bytes_of(action.reads) + bytes_of(action.writes)));
}

CostModel::Submission CostModel::submission(const Action& action, double replayed) const {
  if (!gpu_) return {};
  if (is_between_ranks(action.verb)) return {.seconds = kMessage_s, .n_launches = 0};
  if (action.queue != QueueId::compute) return {};
  const double launch_s = machine_.gpu->launch_s;
  const auto of_launches = [&](double n) -> Submission { return {n * launch_s, n}; };
  if (is_pass(action.verb)) {
    Submission submission = pass(action, replayed).submission;
    const double n_sums = bytes_of(action.writes, Role::sum) > 0 ? 1 : 0;
    submission.seconds += n_sums * launch_s;
    submission.n_launches += n_sums;
    return submission;
  }
  if (action.verb == Verb::square_sum) return of_launches(kSquareSumKernels);
  if (action.verb == Verb::update)
    return of_launches(static_cast<double>(n_trained_tensors(action.block)));
  return of_launches(1);
}

double CostModel::speed(QueueId queue, const Beside& beside) const {
  if (is_on_drive(queue)) {
    const bool reads = queue == QueueId::nvme_read;
    if (machine_.nvme.empty() || !(reads ? beside.nvme_write : beside.nvme_read)) return 1;
    const NvmeProfile& drive = machine_.nvme.front();
    return ratio(drive.mixed_bytes_per_s, reads ? drive.read_bytes_per_s : drive.write_bytes_per_s);
  }
  if (!gpu_ || machine_.gpu->copies.empty()) return 1;
  const double speed = speed_beside_moves(queue, beside);
  return beside.exchange ? speed * share_beside_exchange(queue, beside) : speed;
}

double CostModel::speed_beside_moves(QueueId queue, const Beside& beside) const {
  const CopyRate& copies = machine_.gpu->copies.back();
  const UpdateRate* widest = nullptr;
  for (const UpdateRate& rate : machine_.host.updates)
    if (rate.beside_copies > 0 && (!widest || rate.n_threads > widest->n_threads)) widest = &rate;
  switch (queue) {
    case QueueId::h2d:
    case QueueId::d2h: {
      const bool to_gpu = queue == QueueId::h2d;
      const double alone = to_gpu ? copies.h2d : copies.d2h;
      const double both = to_gpu ? copies.h2d_beside_d2h : copies.d2h_beside_h2d;
      const bool other = to_gpu ? beside.d2h : beside.h2d;
      double speed = other ? ratio(both, alone) : 1;
      if (beside.host && widest) {
        const double shared = ratio(to_gpu ? widest->h2d_beside : widest->d2h_beside, alone);
        // Measured with copies both ways; one way alone lies about half between.
        speed = std::min(speed, other ? shared : (1 + shared) / 2);
      }
      if (!beside.ring) return speed;
      const double n_others = (other ? n_ring_threads_ : 0) + (beside.host ? n_update_threads_ : 0);
      const double threads = ring_bytes_per_s_ * share_beside_ring(n_ring_threads_, n_others);
      return ratio(std::min(alone * speed, threads), std::min(alone, ring_bytes_per_s_));
    }
    case QueueId::host: {
      const double taken = 1 - ratio(update_beside_, update_alone_);
      const double left = beside.h2d && beside.d2h ? 1 - taken
                          : beside.h2d             ? 1 - kTakenByH2d * taken
                          : beside.d2h             ? 1 - kTakenByD2h * taken
                                                   : 1;
      return beside.ring
                 ? std::min(left, share_beside_ring(n_update_threads_,
                                                    n_ring_threads_ * (beside.h2d + beside.d2h)))
                 : left;
    }
    default:
      return 1;
  }
}

double CostModel::share_beside_exchange(QueueId queue, const Beside& beside) const {
  const double sent =
      shape_.n_ranks_of_host() > 1 ? exchange_.bytes_per_s : exchange_.network_bytes_per_s;
  const bool uses_links = !exchange_.has_peer_access || sent <= std::max(link_.h2d, link_.d2h);
  const bool is_copy = queue == QueueId::h2d || queue == QueueId::d2h;
  if (!uses_links || (!is_copy && queue != QueueId::host && queue != QueueId::collective)) return 1;
  const auto rate_of = [&](QueueId copy) {
    const bool runs = copy == QueueId::h2d ? beside.h2d : beside.d2h;
    const CopyRate& rates = machine_.gpu->copies.back();
    return runs ? (copy == QueueId::h2d ? rates.h2d : rates.d2h) * speed_beside_moves(copy, beside)
                : 0;
  };
  const double to_gpu = rate_of(QueueId::h2d), from_gpu = rate_of(QueueId::d2h);
  const auto given = [](double rate, double asked) {
    return rate > 0 && asked > rate ? rate / asked : 1;
  };
  // A rank's link carries received bytes one way, beside copies to the GPU, and sent ones the
  // other.
  const double of_h2d = given(link_.h2d, to_gpu + sent), of_d2h = given(link_.d2h, from_gpu + sent);
  const double of_link = queue == QueueId::h2d          ? of_h2d
                         : queue == QueueId::d2h        ? of_d2h
                         : queue == QueueId::collective ? std::min(of_h2d, of_d2h)
                                                        : 1;
  if (exchange_.has_peer_access) return of_link;
  // The host's memory has what is sent, and is read by who receives it.
  const double updates =
      beside.host ? update_alone_ * kUpdateTraffic_bytes * speed_beside_moves(QueueId::host, beside)
                  : 0;
  const double memory_rate = share_ ? share_->host.dram_bytes_per_s : 0;
  return std::min(of_link, given(memory_rate, to_gpu + from_gpu + updates + 2 * sent));
}

double CostModel::host_traffic(double n_threads) const {
  double n_before = 0, before = 0;
  for (const UpdateRate& rate : machine_.host.updates) {
    const double n = rate.n_threads, traffic = rate.alone * kUpdateTraffic_bytes;
    if (n_threads <= n)
      return before + (traffic - before) * (n_threads - n_before) / std::max(1.0, n - n_before);
    n_before = n;
    before = traffic;
  }
  return before;  // more threads get no more
}

double CostModel::share_beside_ring(double n_threads, double n_others) const {
  const double alone = host_traffic(n_threads);
  const double n_all = n_threads + n_others;
  return alone > 0 ? host_traffic(n_all) * n_threads / n_all / alone : 1;
}

double CostModel::passes_seconds(int64_t n_micro, std::optional<Activations> most) const {
  double seconds = 0;
  const auto least_seconds = [](const PassTimes& times) {
    return times.replayed ? std::min(times.launched.seconds, times.replayed->seconds)
                          : times.launched.seconds;
  };
  const int first_backward = shape_.first_backward();
  for (int b = 0; b < shape_.n_blocks(); ++b) {
    if (!shape_.runs(b)) continue;
    seconds += least_seconds(times_of(b, kForward));
    if (b < first_backward) continue;
    const BlockShape& block = shape_.blocks[b];
    seconds += least_seconds(times_of(b, kBackward));
    // A block that keeps everything recomputes nothing, and so does a block that saves nothing.
    const PassTimes* again = times_of_again(b, most.value_or(block.activations));
    if (again && block.activations != Activations::keep && block.saved_bytes > 0)
      seconds += least_seconds(*again);
  }
  return seconds * static_cast<double>(n_micro);
}

double CostModel::least_fetch_seconds(double n_bytes) const {
  double most = 0;
  if (gpu_)
    for (const CopyRate& rate : machine_.gpu->copies)
      most = std::max(most, rate.h2d);
  return most > 0 ? n_bytes / most : 0;
}

double CostModel::least_drive_seconds(double read_s, double write_s) const {
  const Beside both = {.nvme_read = true, .nvme_write = true};
  const double read = speed(QueueId::nvme_read, both), write = speed(QueueId::nvme_write, both);
  const double gain = std::max(0.0, read + write - 1);  // of a second in which both run
  return read_s + write_s - gain * std::min(read_s / read, write_s / write);
}

double CostModel::step_flops(int n_micro) const {
  double flops = 0;
  for (const BlockTable& block : model_.blocks)
    for (bool backward : {false, true}) {
      const BlockWork work = block.work(batch_, backward);
      flops += work.flops(backward);
      // The scores that a backward makes anew are no part of the model's arithmetic.
      if (backward) flops -= 0.2 * work.attention_flops(backward);
    }
  return flops * n_micro;
}

}  // namespace ferry
