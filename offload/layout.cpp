#include "offload/layout.h"

#include <algorithm>

#include "src/base/bytes.h"

namespace ferry {
namespace {

class LayoutMaker {
 public:
  explicit LayoutMaker(const StepShape& shape) : shape_(shape) {}

  Layout make() {
    // Thousands of layouts are made in one search.
    constexpr size_t kRegions_each = 8;
    out_.regions.reserve(kRegions_each *
                         static_cast<size_t>(shape_.n_blocks() + shape_.n_micro_max));
    segments();
    slots();
    saved();
    boundaries();
    out_.scratch = add(Tag::scratch, Place::gpu, "scratch", shape_.scratch_bytes);
    out_.library = add(Tag::library, Place::gpu, "library", shape_.library_bytes);
    for (int m = 0; m < shape_.n_micro_max; ++m) {
      std::string name = "batch " + std::to_string(m);
      out_.batches.push_back(add(Tag::batch, Place::gpu, name, shape_.batch_bytes));
      out_.batches_on_host.push_back(add(Tag::batch, Place::host, name, shape_.batch_bytes));
    }
    if (shape_.trains) save_buffer();
    out_.step_sums = add(Tag::batch, Place::gpu, "step sums", step_sums_bytes(shape_));
    out_.step_sums_on_host = add(Tag::batch, Place::host, "step sums", step_sums_bytes(shape_));
    if (shape_.trains)
      out_.arrived_sums = add(Tag::batch, Place::host, "arrived sums",
                              shape_.n_blocks() * static_cast<int64_t>(sizeof(double)));
    return std::move(out_);
  }

 private:
  RegionId add(Tag tag, Place place, std::string name, int64_t n_bytes) {
    if (n_bytes <= 0) return -1;
    int64_t& end = out_.n_bytes[static_cast<size_t>(place)];
    n_bytes = round_up(n_bytes, kTensorAlignment_bytes);
    out_.regions.push_back({tag, place, std::move(name), end, n_bytes});
    end += n_bytes;
    return static_cast<RegionId>(out_.regions.size()) - 1;
  }

  const BlockShape& block(int b) const { return shape_.blocks[static_cast<size_t>(b)]; }

  void segments() {
    out_.segments.resize(shape_.blocks.size());
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      auto& ids = out_.segments[static_cast<size_t>(b)];
      ids.fill(-1);
      const auto place_segment_at = [&](Place place, Segment s, Tag tag, int64_t n_elements) {
        ids[static_cast<size_t>(s)] =
            add(tag, place, block(b).name + " " + std::string(name_of(tag)),
                segment_bytes(shape_, b, s, n_elements));
      };
      const auto place_segment = [&](Segment s, Tag tag, int64_t n_elements) {
        place_segment_at(block(b).place, s, tag, n_elements);
      };
      int64_t n = block(b).n_elements;
      // No step reads the master of a frozen block: it is kept for checkpoints alone.
      const bool in_use = shape_.is_trained(b) || shape_.weights_are_master();
      if (shape_.trains)
        place_segment_at(in_use ? block(b).place : Place::host, Segment::master, Tag::master, n);
      if (shape_.trains && shape_.weights_are_master())
        ids[static_cast<size_t>(Segment::weights)] = ids[static_cast<size_t>(Segment::master)];
      else
        place_segment(Segment::weights, Tag::weights, n);
      if (shape_.has_grads(b)) place_segment(Segment::grads, Tag::grads, shape_.n_grad_elements(b));
      if (!shape_.is_trained(b)) continue;
      place_segment(Segment::adam_m, Tag::adam_m, n);
      place_segment(Segment::adam_v, Tag::adam_v, n);
    }
  }

  void slots() {
    const auto compute_bytes = static_cast<int64_t>(size_of(shape_.compute));
    int64_t weights = 0, grads_host = 0, temp = 0;
    bool staged = false;
    const bool vertical = shape_.order == AccumulationOrder::vertical;
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      int64_t n = shape_.n_grad_elements(b);
      const bool host = block(b).place == Place::host;
      if (host) weights = std::max(weights, n * compute_bytes);
      if (host && shape_.has_grads(b)) {
        grads_host =
            std::max(grads_host, n * (vertical && shape_.grads_fp32(b) ? 4 : compute_bytes));
        staged |= shape_.sums_on_host(b);
      }
      const bool for_nobody = b >= first_backward_ && !shape_.has_grads(b);
      if (shape_.sums_on_gpu(b) || for_nobody) temp = std::max(temp, n * compute_bytes);
    }
    if (weights > 0)
      for (int s = 0; s < shape_.n_weight_slots; ++s)
        out_.weight_slots.push_back(
            add(Tag::slots, Place::gpu, "weight slot " + std::to_string(s), weights));
    if (!shape_.trains) return;
    if (grads_host > 0)
      for (int s = 0; s < shape_.n_grad_slots; ++s) {
        out_.grad_slots.push_back(
            add(Tag::slots, Place::gpu, "gradient slot " + std::to_string(s), grads_host));
        if (staged)
          out_.grad_staging.push_back(
              add(Tag::staging, Place::host, "gradient staging " + std::to_string(s), grads_host));
      }
    out_.grad_temp = add(Tag::slots, Place::gpu, "gradient of one micro-batch", temp);
  }

  void saved() {
    const auto n = static_cast<size_t>(shape_.n_blocks() * shape_.n_live());
    out_.saved.assign(n, -1);
    out_.saved_on_host.assign(n, -1);
    int64_t remade = 0, on_host = 0;
    for (int b = 0; b < shape_.n_blocks(); ++b) {
      // Blocks without a backward write their saved tensors to one region, and none is read.
      if (b < first_backward_ || block(b).activations == Activations::recompute) {
        remade = std::max(remade, block(b).saved_bytes);
        continue;
      }
      remade = std::max(remade, block(b).saved_bytes - block(b).saved_kept_bytes());
      const bool host = block(b).activations == Activations::host;
      if (host) on_host = std::max(on_host, block(b).saved_bytes);
      for (int live = 0; live < shape_.n_live(); ++live) {
        auto index = static_cast<size_t>(b * shape_.n_live() + live);
        (host ? out_.saved_on_host : out_.saved)[index] =
            add(Tag::saved, host ? Place::host : Place::gpu, block(b).name + " saved",
                block(b).saved_kept_bytes());
      }
    }
    out_.saved_remade = add(Tag::saved, Place::gpu, "saved, made again", remade);
    if (on_host > 0)
      for (int s = 0; s < shape_.n_saved_slots; ++s)
        out_.saved_slots.push_back(
            add(Tag::saved, Place::gpu, "saved slot " + std::to_string(s), on_host));
  }

  void boundaries() {
    // What no backward reads, two regions hold in turn.
    const int n_passing = std::min(first_backward_, shape_.n_blocks()) - 1;
    bool any_in_slots = false;
    for (int b = 0; b < shape_.n_blocks() - 1; ++b) {
      const bool in_slots = shape_.boundary_in_slots(b), on_host = shape_.boundary_on_host(b);
      any_in_slots |= in_slots;
      for (int live = 0; live < shape_.n_live(); ++live) {
        const auto output_in = [&](Place place) {
          return add(Tag::saved, place, "output of " + block(b).name, shape_.boundary_bytes);
        };
        out_.boundaries.push_back(
            in_slots ? -1
            : b >= 2 && b < n_passing
                ? out_.boundaries[static_cast<size_t>((b - 2) * shape_.n_live() + live)]
                : output_in(Place::gpu));
        out_.boundaries_on_host.push_back(on_host ? output_in(Place::host) : -1);
      }
    }
    for (int s = 0; s < shape_.n_boundary_slots && any_in_slots; ++s)
      out_.boundary_slots.push_back(
          add(Tag::saved, Place::gpu, "boundary slot " + std::to_string(s), shape_.boundary_bytes));
    if (!shape_.trains) return;
    for (int i = 0; i < 2 * shape_.n_live(); ++i)
      out_.grad_boundaries.push_back(
          add(Tag::scratch, Place::gpu, "gradient between blocks", shape_.boundary_bytes));
  }

  /** Room for every state where the shape allows it: a checkpoint then holds up the steps for as
   * long as the copy takes, whatever the disk does. */
  void save_buffer() {
    constexpr int64_t kPage_bytes = 4096;  // the buffer starts on one, regions need not
    // Each segment of a block is a run in a file, which begins and ends within a slot of the
    // buffer.
    constexpr int64_t kRun_bytes = 512 << 10;
    int64_t n_bytes = 0;
    for (int b = 0; b < shape_.n_blocks(); ++b)
      for (Segment s : {Segment::master, Segment::adam_m, Segment::adam_v}) {
        const RegionId id = out_.segments[static_cast<size_t>(b)][static_cast<size_t>(s)];
        if (id < 0) continue;
        // A split master is read as a whole one.
        const bool is_half = s == Segment::master && shape_.split_master;
        n_bytes += out_.region(id).n_bytes * (is_half ? 2 : 1) + kRun_bytes;
      }
    out_.save_buffer = add(Tag::staging, Place::host, "checkpoint buffer",
                           std::min(n_bytes, shape_.save_buffer_bytes_max) + kPage_bytes);
  }

  const StepShape& shape_;
  const int first_backward_ = shape_.first_backward();
  Layout out_;
};

}  // namespace

std::string_view name_of(Segment segment) {
  constexpr std::array<std::string_view, kSegments> kNames = {"weights", "grads", "master",
                                                              "adam_m", "adam_v"};
  return kNames.at(static_cast<size_t>(segment));
}

DType segment_dtype(const StepShape& shape, int block, Segment segment) {
  switch (segment) {
    case Segment::weights:
      return shape.compute;
    case Segment::grads:
      return shape.grads_fp32(block) ? DType::f32 : shape.compute;
    case Segment::master:
      return DType::f32;
    case Segment::adam_m:
    case Segment::adam_v:
      break;
  }
  switch (shape.states) {
    case simd::StateType::fp32:
      return DType::f32;
    case simd::StateType::bf16:
      return DType::bf16;
    case simd::StateType::block8:
      return DType::u8;
  }
  return DType::f32;
}

namespace {

bool has_exponents(const StepShape& shape, Segment segment) {
  return shape.states == simd::StateType::block8 &&
         (segment == Segment::adam_m || segment == Segment::adam_v);
}

}  // namespace

ByteRange element_bytes(
    const StepShape& shape, int block, Segment segment, int64_t begin, int64_t n) {
  const bool is_half = segment == Segment::master && shape.split_master;
  const auto width =
      is_half ? 2 : static_cast<int64_t>(size_of(segment_dtype(shape, block, segment)));
  return {begin * width, n * width};
}

int64_t segment_bytes(const StepShape& shape, int block, Segment segment, int64_t n_elements) {
  return element_bytes(shape, block, segment, 0, n_elements).n_bytes +
         (has_exponents(shape, segment) ? simd::state_blocks(n_elements) : 0);
}

ByteRange exponent_bytes(const StepShape& shape, int block, const TensorExtent& tensor) {
  return {shape.blocks[static_cast<size_t>(block)].n_elements + tensor.offset / simd::kStateBlock,
          simd::state_blocks(tensor.n_elements)};
}

int64_t Layout::bytes_of(Tag tag, Place place) const {
  int64_t bytes = 0;
  for (const Region& r : regions)
    if (r.tag == tag && r.place == place) bytes += r.n_bytes;
  return bytes;
}

Layout make_layout(const StepShape& shape) {
  return LayoutMaker(shape).make();
}

}  // namespace ferry
