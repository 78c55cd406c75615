#include "tests/offload/executor/toy_run.h"
#include "tests/offload/executor/executor_probe.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace ferry::test {
namespace {

/** In [-1, 1), a function of the key alone. */
float hashed(uint64_t key) {
  key += 0x9e3779b97f4a7c15;
  key = (key ^ (key >> 30)) * 0xbf58476d1ce4e5b9;
  key = (key ^ (key >> 27)) * 0x94d049bb133111eb;
  key ^= key >> 31;
  return static_cast<float>(static_cast<int32_t>(key >> 32)) * 0x1p-31f;
}

/** At once; either may lie on a GPU. */
void copy(Device& device, void* to, const void* from, int64_t n_bytes) {
  if (!device.is_cuda()) {
    std::memcpy(to, from, static_cast<size_t>(n_bytes));
    return;
  }
  device.copy(QueueId::save, to, from, n_bytes);
  device.await_copies();
}

std::vector<float> read(Device& device, const std::byte* from, DType type, int64_t n) {
  std::vector<std::byte> bytes(static_cast<size_t>(n) * size_of(type));
  copy(device, bytes.data(), from, std::ssize(bytes));
  std::vector<float> values(static_cast<size_t>(n));
  simd::convert(values.data(), DType::f32, bytes.data(), type, n);
  return values;
}

void write(Device& device, std::byte* to, DType type, const std::vector<float>& values) {
  std::vector<std::byte> bytes(values.size() * size_of(type));
  simd::convert(bytes.data(), type, values.data(), DType::f32, static_cast<int64_t>(values.size()));
  copy(device, to, bytes.data(), std::ssize(bytes));
}

/** A tensor that a block uses, its own or borrowed. */
struct Use {
  const std::byte* weights;
  std::byte* grads;  ///< null in a forward, and where the tensor is frozen
  int64_t n;
};

std::vector<Use> uses_of(const StepShape& shape, const Action& action, const PassMemory& memory) {
  const auto bytes = static_cast<int64_t>(size_of(shape.compute));
  const BlockShape& block = shape.blocks[action.block];
  std::vector<Use> uses;
  auto grads = [&](const TensorExtent& tensor, int64_t offset) {
    return memory.grads && tensor.trainable ? memory.grads + offset * bytes : nullptr;
  };
  for (const TensorExtent& t : block.tensors)
    uses.push_back({memory.weights + t.offset * bytes, grads(t, t.offset), t.n_elements});
  for (int i = 0; i < static_cast<int>(block.borrowed.size()); ++i) {
    const TensorExtent& t = shape.borrowed_tensor(action.block, i);
    uses.push_back(
        {memory.borrowed[i], grads(t, shape.borrowed_in_grads(action.block, i)), t.n_elements});
  }
  return uses;
}

constexpr auto kN = static_cast<size_t>(kWidth);

/** Where a tensor's bytes lie in a segment; nowhere if it is frozen and the segment holds what is
 * trained. */
std::vector<ByteRange> ranges_of(const StepShape& shape,
                                 int block,
                                 Segment segment,
                                 const TensorExtent& tensor) {
  if (!is_in_segment(shape, segment, tensor)) return {};
  const ElementRange there = shape.held(block, {tensor.offset, tensor.n_elements});
  std::vector<ByteRange> ranges = {element_bytes(shape, block, segment, there.begin, there.n)};
  if (segment_dtype(shape, block, segment) == DType::u8)
    ranges.push_back(exponent_bytes(shape, block, tensor));
  return ranges;
}

}  // namespace

float ToyWork::noise(const Action& action, uint64_t operation, int64_t index) const {
  uint64_t key = static_cast<uint64_t>(step_);
  const int micro = micro_of_step(ranks_, action.micro);
  for (uint64_t part : {static_cast<uint64_t>(micro), static_cast<uint64_t>(action.block),
                        operation, static_cast<uint64_t>(index)})
    key = key * 1000003 + part;
  return hashed(key);
}

void ToyWork::reach(const std::byte* on_gpu) {
  if (!device_.is_cuda()) return;  // others have, or the work would not run
  // A copy into memory that is not pinned returns when it has been made.
  std::byte byte;
  device_.copy(QueueId::compute, &byte, on_gpu, 1);
}

std::vector<float> ToyWork::fold(const Action& action, const PassMemory& memory) const {
  std::vector<float> sum(kN, 0.0f);
  for (const Use& use : uses_of(shape_, action, memory)) {
    const std::vector<float> w = read(device_, use.weights, shape_.compute, use.n);
    for (size_t j = 0; j < w.size(); ++j)
      sum[j % kN] += w[j] * (0.3f + 0.01f * static_cast<float>(j % 13));
  }
  return sum;
}

namespace {

/** The place of the first value that passes of the block use so; null: there is none. */
std::byte* value_at(const BlockShape& block,
                    const PassMemory& memory,
                    PortUse forward,
                    PortUse backward) {
  for (size_t p = 0; p < block.ports.size(); ++p)
    if (block.ports[p].forward == forward && block.ports[p].backward == backward)
      return memory.ports[p];
  return nullptr;
}

}  // namespace

void ToyWork::forward(const Action& action, const PassMemory& memory) {
  if (before) before(action);
  reach(memory.batch);
  const std::vector<float> batch = read(device_, memory.batch, DType::f32, 2 * kWidth);
  std::vector<float> x(batch.begin(), batch.begin() + kWidth);
  if (const std::byte* in = value_at(block(action), memory, PortUse::reads, PortUse::reads))
    x = read(device_, in, shape_.compute, kWidth);
  const std::vector<float> w = fold(action, memory);
  std::vector<float> saved(2 * kN);
  std::vector<float> y(kN);
  for (size_t i = 0; i < kN; ++i) {
    const float sum = x[i] * (0.8f + 0.1f * w[i]) + 0.1f * w[(i + 1) % kN];
    y[i] = sum / (1.0f + std::fabs(sum)) + 0.1f * noise(action, 0, static_cast<int64_t>(i));
    saved[i] = x[i];
    saved[kN + i] = y[i];
  }
  if (memory.saved_recomputed) {
    // x is kept, y made again.
    const auto half = saved.begin() + kN;
    if (action.verb == Verb::forward)
      write(device_, memory.saved, DType::f32, std::vector<float>(saved.begin(), half));
    write(device_, memory.saved_recomputed, DType::f32, std::vector<float>(half, saved.end()));
    if (action.verb == Verb::recompute) return;
  } else if (block(action).saved_bytes > 0) {
    write(device_, memory.saved, DType::f32, saved);
  }
  if (std::byte* out = value_at(block(action), memory, PortUse::writes, PortUse::none))
    write(device_, out, shape_.compute, y);
  if (!memory.loss) return;
  float loss = 0;
  for (size_t i = 0; i < kN; ++i)
    loss += y[i] * batch[kN + i];
  copy(device_, memory.loss, &loss, sizeof loss);
}

void ToyWork::backward(const Action& action, const PassMemory& memory) {
  run_backward(action, memory);
  if (after_backward) after_backward(action, memory);
}

void ToyWork::run_backward(const Action& action, const PassMemory& memory) {
  if (before) before(action);
  reach(memory.batch);
  const std::vector<float> batch = read(device_, memory.batch, DType::f32, 2 * kWidth);
  std::vector<float> dy(batch.begin() + kWidth, batch.end());
  if (const std::byte* out = value_at(block(action), memory, PortUse::none, PortUse::reads))
    dy = read(device_, out, shape_.compute, kWidth);
  std::vector<float> x(batch.begin(), batch.begin() + kWidth);
  if (const std::byte* in = value_at(block(action), memory, PortUse::reads, PortUse::reads))
    x = read(device_, in, shape_.compute, kWidth);
  std::vector<float> saved(2 * kN, 0.5f);
  if (memory.saved_recomputed) {
    saved = read(device_, memory.saved, DType::f32, kWidth);
    const std::vector<float> y = read(device_, memory.saved_recomputed, DType::f32, kWidth);
    saved.insert(saved.end(), y.begin(), y.end());
  } else if (block(action).saved_bytes > 0) {
    saved = read(device_, memory.saved, DType::f32, 2 * kWidth);
  }
  const std::vector<float> w = fold(action, memory);
  uint64_t operation = 1;
  for (const Use& use : uses_of(shape_, action, memory)) {
    std::vector<float> g = read(device_, use.weights, shape_.compute, use.n);
    for (size_t j = 0; j < g.size(); ++j)
      g[j] = 0.01f * g[j] + dy[j % kN] * saved[kN + (j * 3) % kN] + 0.1f * x[(j + 5) % kN] +
             0.05f * noise(action, operation, static_cast<int64_t>(j));
    if (use.grads) write(device_, use.grads, shape_.compute, g);
    ++operation;
  }
  std::byte* grad_of_x = value_at(block(action), memory, PortUse::none, PortUse::writes);
  if (!grad_of_x) return;
  std::vector<float> dx(kN);
  for (size_t i = 0; i < kN; ++i)
    dx[i] = 0.7f * dy[i] + 0.1f * saved[i] + 0.02f * w[i];
  write(device_, grad_of_x, shape_.compute, dx);
}

bool ToyResult::operator==(const ToyResult& other) const {
  auto same = [](const std::vector<double>& a, const std::vector<double>& b) {
    return a.size() == b.size() &&
           (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
  };
  return states == other.states && same(losses, other.losses) &&
         same(square_sums, other.square_sums) && same(evaluations, other.evaluations);
}

ToyRun::ToyRun(const ToyOptions& options, std::unique_ptr<WorkerPool> pool)
    : options_(options),
      layout_(make_layout(options_.shape)),
      pool_(pool                         ? std::move(pool)
            : options_.pool == Pool::tbb ? make_tbb_pool(options_.n_workers)
                                         : make_thread_pool(options_.n_workers)),
      device_(options_.make_device ? options_.make_device(*pool_)
                                   : make_simulated_device(options_.device, *pool_)),
      memory_(*device_, layout_, *pool_),
      work_(options_.shape, *device_) {
  make_store();
  executor_ =
      std::make_unique<Executor>(options_.shape, *device_, *pool_, memory_, options_.overlap,
                                 states_ ? &*states_ : nullptr, options_.link);
  if (options_.fault) ExecutorProbe::set_fault(*executor_, options_.fault);
  decide = [this](const StepSums& sums) {
    if (!options_.clips) {
      Decision decision = {.skip = !sums.has_finite_block, .steps = steps_of(1.0f)};
      n_updates_ += sums.has_finite_block;
      return decision;
    }
    if (step_ == options_.skipped_step) return Decision{.skip = true};
    // Active in some of the steps.
    const double norm = std::sqrt(sums.square_sum), max_norm = 1.5 + 20.0 * (step_ % 2);
    const float factor = norm > max_norm ? static_cast<float>(max_norm / (norm + 1e-6)) : 1.0f;
    Decision decision = {.steps = steps_of(factor)};
    ++n_updates_;
    return decision;
  };
  write_weights();
}

std::vector<simd::UpdateStep> ToyRun::steps_of(float factor) const {
  simd::UpdateHyper hyper{.lr = 0.01, .weight_decay = 0.1, .momentum = 0.9, .nesterov = true};
  simd::UpdateHyper no_decay = hyper;
  no_decay.weight_decay = 0;
  std::vector<simd::UpdateStep> steps = {
      simd::make_step(options_.shape.optim, hyper, n_updates_ + 1, factor),
      simd::make_step(options_.shape.optim, no_decay, n_updates_ + 1, factor)};
  for (simd::UpdateStep& step : steps)
    step.noise = static_cast<uint64_t>(n_updates_);
  return steps;
}

UpdateRule ToyRun::rule() {
  UpdateRule rule = {.decide = decide};
  if (!options_.clips) rule.steps_ahead = steps_of(1.0f);
  rule.describe = [step = step_](const StepOutcome&) { return std::to_string(step); };
  return rule;
}

void ToyRun::make_store() {
  constexpr int kKept = 1;
  std::vector<StoredSegment> segments = StateStore::segments_of(options_.shape);
  if (segments.empty()) return;
  disk_.emplace(StoreLayout(segments, kKept).n_bytes(), options_.device.seed);
  ExtentStore::create(*disk_, std::move(segments), kKept, "toy");
  store_.emplace(*disk_, StoreIdentity{.run = "toy"});
  states_.emplace(options_.shape, *store_);
  // A planted fault may read gradients before a step writes them.
  std::vector<StorePage> zeros(
      static_cast<size_t>(grad_piece_bytes(options_.shape) / kStorePage_bytes));
  for (int b = 0; b < options_.shape.n_blocks(); ++b)
    for (int piece = 0; piece < layout_.block(b).n_state_pieces; ++piece)
      if (layout_.block(b).writes_grads_to_drive)
        states_->write_grads(b, piece, bytes_of(zeros).data());
}

void ToyRun::write_bytes(int block,
                         Segment segment,
                         int64_t offset,
                         std::span<const std::byte> bytes) {
  if (is_on_drive(block, segment))
    return executor_->state_window()->write(block, segment, offset, bytes);
  copy(*device_, memory_.segment(block, segment) + offset, bytes.data(), std::ssize(bytes));
}
void ToyRun::read_bytes(int block,
                        Segment segment,
                        int64_t offset,
                        std::span<std::byte> bytes) const {
  if (is_on_drive(block, segment))
    return executor_->state_window()->read(block, segment, offset, bytes);
  copy(*device_, bytes.data(), memory_.segment(block, segment) + offset, std::ssize(bytes));
}

void ToyRun::write_weights() {
  for (int b = 0; b < options_.shape.n_blocks(); ++b) {
    uint64_t index = 0;  // the values do not depend on what is frozen, as the offsets do
    for (const TensorExtent& t : options_.shape.blocks[b].tensors) {
      std::vector<float> w(static_cast<size_t>(t.n_elements));
      for (size_t j = 0; j < w.size(); ++j)
        w[j] = hashed(static_cast<uint64_t>(b) << 40 | index << 32 | j);
      ++index;
      const auto put = [&](Segment s, DType type, const void* values, DType from) {
        std::vector<std::byte> bytes(w.size() * size_of(type));
        simd::convert(bytes.data(), type, values, from, t.n_elements);
        const ElementRange held = options_.shape.held(b, {t.offset, t.n_elements});
        const auto skipped = static_cast<size_t>(held.begin - t.offset) * size_of(type);
        const ByteRange range = element_bytes(options_.shape, b, s, held.begin, held.n);
        if (held.n > 0)
          write_bytes(b, s, range.offset,
                      std::span(bytes).subspan(skipped, static_cast<size_t>(range.n_bytes)));
      };
      const bool has_master =
          options_.shape.trains && is_in_segment(options_.shape, Segment::master, t);
      if (has_master && options_.shape.split_master) {
        std::vector<uint16_t> high(w.size()), low(w.size());
        simd::split_f32(high.data(), low.data(), w.data(), t.n_elements);
        put(Segment::weights, DType::bf16, high.data(), DType::bf16);
        put(Segment::master, DType::bf16, low.data(), DType::bf16);
        continue;
      }
      if (has_master) put(Segment::master, DType::f32, w.data(), DType::f32);
      put(Segment::weights, options_.shape.compute, w.data(), DType::f32);
    }
  }
  ExecutorProbe::commit_states(*executor_, "start");
}

void ToyRun::write_batches(const Ranks& ranks, int n_micro) {
  for (int m = 0; m < Rounds(ranks, n_micro).n_of(ranks.rank); ++m) {
    std::vector<float> values(2 * kN);
    const int micro = micro_of_step(ranks, m);
    for (size_t i = 0; i < values.size(); ++i)
      values[i] = hashed(static_cast<uint64_t>(step_ * 100 + micro) << 32 | 0x80000000 | i);
    write(*device_, memory_.at(layout_.batches_on_host[static_cast<size_t>(m)]), DType::f32,
          values);
  }
}

std::optional<StepOutcome> ToyRun::take(StepRun& run) {
  while (const Action* pass = run.next()) {
    if (!options_.enters) {
      run.submit(work_);
      continue;
    }
    std::optional<EnteredPass> entered = run.enter(pass->verb, pass->block, pass->micro);
    if (!entered) break;
    if (pass->verb == Verb::backward)
      work_.backward(entered->action(), entered->memory());
    else
      work_.forward(entered->action(), entered->memory());
  }
  return run.finish();
}

StepRun ToyRun::begin(int n_micro) {
  write_batches(options_.shape.ranks, n_micro);
  work_.begin_step(step_, options_.shape.ranks);
  return executor_->begin(n_micro, rule());
}

StepOutcome ToyRun::step(int n_micro) {
  StepRun run = begin(n_micro);
  StepOutcome outcome = take(run).value();
  note(outcome);
  spoil_batches(n_micro);
  return outcome;
}

bool ToyRun::drop_step(int n_micro, int n_asked, const std::function<void(int)>& look) {
  write_batches(options_.shape.ranks, n_micro);
  work_.begin_step(step_, options_.shape.ranks);
  int asked = 0;
  StepRun run = executor_->begin(n_micro, rule(), [&] {
    if (look) look(asked);
    return asked++ == n_asked;
  });
  const auto outcome = take(run);
  spoil_batches(n_micro);
  if (outcome) note(*outcome);
  return !outcome;
}

void ToyRun::note(const StepOutcome& outcome) {
  ++step_;
  result_.losses.push_back(outcome.loss);
  result_.square_sums.push_back(outcome.square_sum);
}

/** A step's batches may be rewritten when it has returned. */
void ToyRun::spoil_batches(int n_micro) {
  for (int m = 0; m < n_own(n_micro); ++m) {
    const Region& region = layout_.region(layout_.batches_on_host[static_cast<size_t>(m)]);
    std::memset(memory_.at(layout_.batches_on_host[static_cast<size_t>(m)]), 0xff,
                static_cast<size_t>(region.n_bytes));
  }
}

double ToyRun::evaluate() {
  // Each rank evaluates a batch, whatever share of a step it has.
  Ranks ranks = options_.shape.ranks;
  ranks.shares.clear();
  write_batches(ranks, options_.n_evaluated * ranks.n_replicas());
  work_.begin_step(1000 + step_, ranks);
  StepRun run = executor_->begin_evaluation(options_.n_evaluated);
  const StepOutcome outcome = take(run).value();
  EXPECT_EQ(std::ssize(outcome.losses), options_.n_evaluated);
  result_.evaluations.insert(result_.evaluations.end(), outcome.losses.begin(),
                             outcome.losses.end());
  return outcome.losses.front();
}

ToyResult ToyRun::result() {
  executor_->settle();
  ToyResult result = result_;
  result.states = states();
  return result;
}

std::vector<std::byte> ToyRun::states() const {
  std::vector<std::byte> states;
  for (const std::vector<std::byte>& bytes : states_by_segment())
    states.insert(states.end(), bytes.begin(), bytes.end());
  return states;
}

std::vector<std::vector<std::byte>> ToyRun::states_by_segment() const {
  std::vector<std::vector<std::byte>> states;
  if (states_) executor_->state_window()->let_go();
  for (int b = 0; b < options_.shape.n_blocks(); ++b)
    for (const TensorExtent& t : options_.shape.blocks[b].tensors)
      for (Segment s : lasting_segments(options_.shape.optim))
        for (const ByteRange& range : ranges_of(options_.shape, b, s, t)) {
          std::vector<std::byte>& bytes = states.emplace_back(static_cast<size_t>(range.n_bytes));
          // A frozen block has no states, and a rank may have no part of a block.
          if (layout_.segment(b, s) >= 0 && !bytes.empty())
            read_bytes(b, s, range.offset, bytes);
          else
            bytes.clear();
        }
  return states;
}

std::vector<double> ToyRun::square_sums() const {
  std::vector<double> sums;
  for (int b = 0; b < options_.shape.n_blocks(); ++b)
    for (const TensorExtent& t : options_.shape.blocks[b].tensors) {
      if (!t.trainable) continue;
      const DType type = segment_dtype(options_.shape, b, Segment::grads);
      const std::byte* grads = memory_.segment(b, Segment::grads);
      sums.push_back(simd::square_sum(grads + t.offset * static_cast<int64_t>(size_of(type)), type,
                                      t.n_elements));
    }
  return sums;
}

std::vector<std::vector<std::byte>> ToyRun::tensors() const {
  std::vector<std::vector<std::byte>> tensors;
  if (states_) executor_->state_window()->let_go();
  for (int b = 0; b < options_.shape.n_blocks(); ++b)
    for (const TensorExtent& t : options_.shape.blocks[b].tensors) {
      auto& bytes = tensors.emplace_back();
      for (Segment s : {Segment::weights, Segment::master}) {
        if (!is_in_segment(options_.shape, s, t)) continue;
        const ByteRange range = element_bytes(options_.shape, b, s, t.offset, t.n_elements);
        const size_t begin = bytes.size();
        bytes.resize(begin + static_cast<size_t>(range.n_bytes));
        read_bytes(b, s, range.offset, std::span(bytes).subspan(begin));
      }
    }
  return tensors;
}

ToyResult run_toy(const ToyOptions& options) {
  ToyRun run(options);
  for (size_t s = 0; s < options.n_micro.size(); ++s) {
    run.step(options.n_micro[s]);
    if (static_cast<int>(s) == options.evaluate_after) run.evaluate();
  }
  return run.result();
}

void read_block(const StepShape& shape, BlockStates& block, std::vector<std::byte>& into) {
  constexpr int64_t kPiece = 777 * sizeof(float);
  const int b = block.block();
  for (const TensorExtent& t : shape.blocks[b].tensors)
    for (Segment s : saved_segments(shape.optim))
      for (const ByteRange& range : s == Segment::master && is_in_segment(shape, s, t)
                                        ? std::vector<ByteRange>{{t.offset * 4, t.n_elements * 4}}
                                        // fp32
                                        : ranges_of(shape, b, s, t))
        for (int64_t at = 0; at < range.n_bytes; at += kPiece) {
          const auto begin = into.size();
          into.resize(begin + static_cast<size_t>(std::min(kPiece, range.n_bytes - at)));
          const std::span piece = std::span(into).subspan(begin);
          const auto third = static_cast<int64_t>(piece.size() / 12 * 4);
          const std::array pieces = {
              StatePiece{s, range.offset + at, piece.first(static_cast<size_t>(third))},
              StatePiece{s, range.offset + at + third, piece.subspan(static_cast<size_t>(third))}};
          std::array<std::atomic<int>, 2> n_looks{};
          block.read(pieces, [&](size_t i) { ++n_looks[i]; });
          EXPECT_TRUE(n_looks[0] == 1 && n_looks[1] == 1);
        }
}

void save(ToyRun& run, const StepShape& shape, Saved& saved) {
  run.executor().save(
      [&shape, &saved](BlockStates& block) {
        read_block(shape, block, saved.bytes[block.block()]);
      },
      [&saved] { saved.has_ended = true; });
}

StandingDisk::StandingDisk(ToyRun& run, const StepShape& shape, int stands_before) {
  run.executor().save(
      [this, &shape, stands_before](BlockStates& block) {
        if (n_blocks_++ == stands_before) moves_.wait(false);
        read_block(shape, block, saved.bytes[block.block()]);
      },
      [this] { saved.has_ended = true; });
}

}  // namespace ferry::test
