#include "offload/step/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "offload/step/pager.h"
#include "offload/step/state_pieces.h"
#include "src/base/bytes.h"
#include "tests/offload/step/shapes.h"

namespace ferry::test {
namespace {

TEST(Layout, RegionsAreAlignedDoNotOverlapAndFillTheReservation) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 300; ++i) {
    StepShape shape = random_shape(random);
    shape.scratch_bytes = static_cast<int64_t>(random() % 5000);
    shape.library_bytes = static_cast<int64_t>(random() % 5000);
    shape.trains = random() % 4 != 0;
    const Layout layout = make_layout(shape);
    const LayoutBytes bytes = layout_bytes(shape);
    EXPECT_EQ(bytes.n_bytes, layout.n_bytes);
    EXPECT_EQ(bytes.save_buffer_bytes,
              layout.save_buffer < 0 ? 0 : layout.region(layout.save_buffer).n_bytes);
    for (Place place : {Place::device, Place::host}) {
      std::vector<Region> regions;
      for (const Region& r : layout.regions)
        if (r.place == place) regions.push_back(r);
      std::sort(regions.begin(), regions.end(),
                [](const Region& a, const Region& b) { return a.offset < b.offset; });
      int64_t end = 0;
      for (const Region& r : regions) {
        EXPECT_EQ(r.offset % kTensorAlignment_bytes, 0) << r.name;
        EXPECT_GE(r.offset, end) << r.name;
        EXPECT_GT(r.n_bytes, 0) << r.name;
        end = r.offset + r.n_bytes;
      }
      const int64_t reserved = layout.n_bytes[place];
      EXPECT_EQ(end, reserved);
      int64_t tagged = 0;
      for (int t = 0; t < kTags; ++t)
        tagged += layout.bytes_of(static_cast<Tag>(t), place);
      EXPECT_EQ(tagged, reserved);
    }
  }
}

/** The host's regions that moves of a GPU's steps and evaluations read or write. */
std::set<RegionId> ends_of_copies(const StepShape& shape, const Layout& layout) {
  std::vector<StepList> lists = {make_evaluation_list(shape, layout)};
  if (shape.trains)
    for (const UpdateOrder order : {UpdateOrder::after_decision, UpdateOrder::as_grads_arrive})
      for (int n_micro = 1; n_micro <= shape.n_micro_max; ++n_micro)
        lists.push_back(make_training_list(shape, layout, n_micro, order));
  std::set<RegionId> ends;
  for (const StepList& list : lists)
    for (const Action& action : list)
      if (action.queue == QueueId::h2d || action.queue == QueueId::d2h)
        for (const auto* all : {&action.reads, &action.writes})
          for (const Bytes& bytes : *all)
            if (layout.region(bytes.region).place == Place::host) ends.insert(bytes.region);
  return ends;
}

TEST(Layout, WhatCopiesTouchLiesTogetherWithoutTheCpusStates) {
  std::mt19937_64 random(5);
  int n_states = 0;
  for (int i = 0; i < 300; ++i) {
    StepShape shape = random_shape(random);
    if (shape.computes_on_host) continue;
    shape.trains = random() % 4 != 0;
    const Layout layout = make_layout(shape);
    const std::set<RegionId> ends = ends_of_copies(shape, layout);
    const int64_t begin = layout.copied_on_host.offset, end = begin + layout.copied_on_host.n_bytes;
    for (RegionId id = 0; id < static_cast<RegionId>(layout.regions.size()); ++id) {
      const Region& region = layout.region(id);
      if (region.place != Place::host) continue;
      const bool is_inside = region.offset >= begin && region.offset + region.n_bytes <= end;
      EXPECT_TRUE(is_inside || region.offset >= end || region.offset + region.n_bytes <= begin);
      EXPECT_TRUE(is_inside || !ends.contains(id)) << region.name;
      // Some slots are of no use to short lists.
      if (region.tag <= Tag::state_1 || region.name.starts_with("state ")) {
        EXPECT_EQ(is_inside, ends.contains(id)) << region.name;
      }
      n_states += !is_inside && region.tag == Tag::state_0;
    }
    const bool has_gpu_states = std::ranges::any_of(layout.regions, [](const Region& region) {
      return region.place == Place::device &&
             (region.tag == Tag::state_0 || region.tag == Tag::master);
    });
    if (layout.save_buffer >= 0 && has_gpu_states) {
      EXPECT_LT(layout.region(layout.save_buffer).offset, end);
    }
  }
  EXPECT_GT(n_states, 100);
}

TEST(Layout, GradientsOnADriveTakeWindowsOfTheHostOrSlotsOfACpu) {
  for (const bool is_cpu : {false, true})
    for (const auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical}) {
      ShapeOptions o = {
          .compute = DType::bf16,
          .n_micro_max = order == AccumulationOrder::vertical ? 3 : 1,
          .order = order,
          .placing = is_cpu ? Placing::everything_on_drive_of_cpu : Placing::everything_on_drive,
          .tied = false,
          .n_grad_slots = 1,
          .state_piece_elements = 4096};
      const Layout layout = make_layout(make_shape(o));
      EXPECT_EQ(layout.bytes_of(Tag::grads, Place::host), 0);
      EXPECT_EQ(layout.bytes_of(Tag::grads, Place::device), 0);
      // 1,280 + 3 x 5,632 + 512 elements, of which three micro-batches make fp32.
      const int64_t width = o.n_micro_max > 1 ? 4 : 2;
      EXPECT_EQ(layout.bytes_of(Tag::grads, Place::nvme), width * (1280 + 3 * 5632 + 512));
      EXPECT_EQ(layout.grad_windows.size(), is_cpu ? 0u : 2u);
      ASSERT_EQ(layout.grad_slots.size(), 1u);
      const Region& slot = layout.region(layout.grad_slots[0]);
      // A drive takes whole pages: 1,536 elements are left for a second piece.
      EXPECT_EQ(slot.n_bytes, !is_cpu      ? width * 5632
                              : width == 4 ? 4 * 4096 + 2 * kDrivePage_bytes
                                           : 2 * 4096 + kDrivePage_bytes);
      for (RegionId id : layout.grad_windows)
        EXPECT_EQ(layout.region(id).n_bytes, width * 4096);
      for (RegionId id : layout.state_slots)
        EXPECT_EQ(layout.region(id).n_bytes - layout.region(layout.state_window).n_bytes,
                  width * 4096);
      for (const auto* ids : {&layout.state_slots, &layout.grad_windows, &layout.weight_windows})
        for (RegionId id : *ids)
          EXPECT_EQ(layout.region(id).offset % kDrivePage_bytes, 0);
      EXPECT_EQ(is_cpu && slot.offset % kDrivePage_bytes != 0, false);
    }
}

// A drive writes from any of them.
TEST(Layout, ACpuHasOneKindOfGradientSlots) {
  StepShape shape = make_shape({.n_micro_max = 1,
                                .placing = Placing::everything_on_drive_of_cpu,
                                .tied = false,
                                .state_piece_elements = 4096});
  shape.blocks.back().place = kStatesOnDrive;
  const Layout layout = make_layout(shape);
  ASSERT_EQ(layout.grad_slots.size(), 2u);
  for (RegionId id : layout.grad_slots) {
    EXPECT_EQ(layout.region(id).offset % kDrivePage_bytes, 0);
    EXPECT_GE(layout.region(id).n_bytes, drive_grads_bytes(shape, 1));
  }
}

/** The regions that outputs of blocks have; -1 where they are in slots. */
std::set<RegionId> outputs_of(const StepShape& shape, const Layout& layout) {
  std::set<RegionId> regions;
  for (const BlockShape& block : shape.blocks)
    for (const Port& port : block.ports)
      for (int live = 0; live < shape.n_live() && port.forward == PortUse::writes; ++live)
        regions.insert(layout.values[port.value * shape.n_live() + live]);
  return regions;
}

/** Bytes in a place of everything that grows with the parameters and stays for the run. */
double state_bytes_per_parameter(const StepShape& shape, Place place) {
  const Layout layout = make_layout(shape);
  int64_t bytes = 0, n = 0;
  for (Tag tag : {Tag::weights, Tag::grads, Tag::master, Tag::state_0, Tag::state_1})
    bytes += layout.bytes_of(tag, place);
  for (const BlockShape& b : shape.blocks)
    n += b.n_elements;
  return static_cast<double>(bytes) / static_cast<double>(n);
}

TEST(Layout, TakesTheHostBytesAParameterOfTheDesign) {
  for (DType compute : {DType::bf16, DType::f16, DType::f32})
    for (int n_micro : {1, 4})
      for (auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical}) {
        const StepShape shape =
            make_shape({.compute = compute, .n_micro_max = n_micro, .order = order, .tied = false});
        const double expected = n_micro > 1 && compute != DType::f32 ? 18 : 16;
        EXPECT_EQ(state_bytes_per_parameter(shape, Place::host), expected);
        EXPECT_EQ(state_bytes_per_parameter(shape, Place::device), 0);
      }
}

// 256 elements of a block of states have one byte more, and regions end on 512 bytes.
TEST(Layout, ReducedStatesAndASplitMasterTakeTheirBytes) {
  const auto bytes = [](simd::Optim optim, bool split) {
    return state_bytes_per_parameter(make_shape({.compute = DType::bf16,
                                                 .tied = false,
                                                 .large_tensor_elements = 1 << 20,
                                                 .optim = optim,
                                                 .split_master = split}),
                                     Place::host);
  };
  EXPECT_NEAR(bytes(simd::Optim::adamw_bf16, false), 18 - 4, 0.02);  // three micro-batches
  EXPECT_NEAR(bytes(simd::Optim::adamw_8bit, false), 18 - 6 + 2 / 256.0, 0.02);
  EXPECT_NEAR(bytes(simd::Optim::adamw, true), 18 - 2, 0.02);
  EXPECT_NEAR(bytes(simd::Optim::adamw_8bit, true), 18 - 8 + 2 / 256.0, 0.02);
  EXPECT_NEAR(bytes(simd::Optim::lion, false), 18 - 4, 0.02);
  EXPECT_NEAR(bytes(simd::Optim::sgd, false), 18 - 8, 0.02);
}

TEST(Layout, AModelThatOnlyEvaluatesHoldsItsWeightsAlone) {
  const StepShape shape = make_shape({.compute = DType::bf16, .trains = false});
  EXPECT_EQ(state_bytes_per_parameter(shape, Place::host), 2);
  const Layout layout = make_layout(shape);
  EXPECT_TRUE(layout.grad_slots.empty());
  EXPECT_TRUE(layout.saved_slots.empty());
  EXPECT_EQ(outputs_of(shape, layout).size(), 2u);
}

int64_t bytes_of(const Layout& layout, std::string_view block, std::string_view tag) {
  for (const Region& r : layout.regions)
    if (r.name == std::string(block) + " " + std::string(tag)) return r.n_bytes;
  return 0;
}

TEST(Layout, AFrozenBlockHoldsItsWeightsAlone) {
  for (Placing placing : {Placing::gpu, Placing::host})
    for (int n_micro : {1, 3}) {
      ShapeOptions o{.n_layers = 5,
                     .compute = DType::bf16,
                     .n_micro_max = n_micro,
                     .placing = placing,
                     .tied = false};
      const Layout whole = make_layout(make_shape(o));
      o.frozen = Frozen::first_blocks;  // embeddings and layer 0
      const Layout frozen = make_layout(make_shape(o));
      int64_t saved_bytes = 0;
      for (std::string_view block : {"embeddings", "layer.0"}) {
        EXPECT_EQ(bytes_of(frozen, block, "weights"), bytes_of(whole, block, "weights"));
        for (std::string_view tag : {"grads", "master", "adam_m", "adam_v"}) {
          EXPECT_GT(bytes_of(whole, block, tag), 0);
          EXPECT_EQ(bytes_of(frozen, block, tag), 0) << block << " " << tag;
        }
        saved_bytes += bytes_of(whole, block, "saved");
      }
      // One region for what their forwards save, in place of one each.
      EXPECT_EQ(bytes_of(frozen, "saved,", "made again"), saved_bytes / 2);
      for (Tag tag : {Tag::grads, Tag::master, Tag::state_0, Tag::state_1})
        EXPECT_GT(frozen.bytes_of(tag, placing == Placing::gpu ? Place::device : Place::host), 0);
    }
}

TEST(Layout, OutputsBelowTheLowestBackwardPassThroughTwoRegions) {
  StepShape shape = make_shape({.n_layers = 8, .tied = false});
  const auto n_outputs = [&] {
    const Layout layout = make_layout(shape);
    return outputs_of(shape, layout).size();
  };
  EXPECT_EQ(n_outputs(), 9u);  // embeddings and 8 layers
  for (size_t b = 0; b < 6; ++b)
    for (TensorExtent& t : shape.blocks[b].tensors)
      t.trainable = false;
  arrange(shape);
  EXPECT_EQ(shape.first_backward(), 6);
  EXPECT_EQ(n_outputs(), 2u + 4u);  // those of blocks 5 to 8 are read again
}

TEST(Layout, LayerInputsOnTheHostTakeSlotsOfTheGpuHoweverManyLayersThereAre) {
  for (auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical})
    for (int n_micro : {1, 3}) {
      ShapeOptions o{.compute = DType::bf16,
                     .n_micro_max = n_micro,
                     .order = order,
                     .activations = Activations::recompute,
                     .layer_inputs_on_host = true,
                     .tied = false,
                     .n_layer_input_slots = 5};
      const int n_live = order == AccumulationOrder::vertical ? n_micro : 1;
      const auto bytes = [&](int n_layers, Place place) {
        o.n_layers = n_layers;
        return make_layout(make_shape(o)).bytes_of(Tag::saved, place);
      };
      EXPECT_EQ(bytes(20, Place::device), bytes(6, Place::device));
      const int64_t layer_input = round_up(layer_input_bytes(o.compute), kTensorAlignment_bytes);
      // Embeddings and layers, less those that stay in the slots.
      EXPECT_EQ(bytes(20, Place::host), (21 - 5 / n_live) * n_live * layer_input);
      StepShape shape = make_shape(o);
      const Layout in_slots = make_layout(shape);
      EXPECT_EQ(in_slots.value_slots.size(), 5u);
      shape.layer_inputs_on_host = false;
      const Layout on_gpu = make_layout(shape);
      EXPECT_EQ(
          on_gpu.bytes_of(Tag::saved, Place::device) - in_slots.bytes_of(Tag::saved, Place::device),
          (21 * n_live - 5) * layer_input);
      EXPECT_EQ(on_gpu.bytes_of(Tag::saved, Place::host), 0);
      EXPECT_TRUE(on_gpu.value_slots.empty());
    }
}

TEST(Layout, LayerInputsOnTheHostAreThoseThatABackwardReads) {
  StepShape shape = make_shape({.n_layers = 8, .layer_inputs_on_host = true, .tied = false});
  for (size_t b = 0; b < 6; ++b)
    for (TensorExtent& t : shape.blocks[b].tensors)
      t.trainable = false;
  arrange(shape);
  const Layout layout = make_layout(shape);
  const std::set<RegionId> outputs = outputs_of(shape, layout);
  EXPECT_EQ(outputs.size(), 3u);
  EXPECT_TRUE(outputs.contains(-1));
  // Those of blocks 5 to 8 are read again, and two slots hold the last two.
  EXPECT_EQ(std::ranges::count_if(layout.values_on_host, [](RegionId id) { return id >= 0; }), 2);
  shape.trains = false;
  EXPECT_TRUE(make_layout(shape).value_slots.empty());
}

TEST(Layout, OnTheHostMoreLayersTakeNoMoreOfTheGpuThanWhatForwardsLeave) {
  for (auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical})
    for (auto activations :
         {Activations::keep, Activations::selective, Activations::recompute, Activations::host}) {
      ShapeOptions o{.compute = DType::bf16, .order = order, .activations = activations};
      auto bytes = [&](int n_layers, Tag tag) {
        o.n_layers = n_layers;
        return make_layout(make_shape(o)).bytes_of(tag, Place::device);
      };
      for (int t = 0; t < kTags; ++t) {
        const Tag tag = static_cast<Tag>(t);
        if (tag == Tag::saved)
          EXPECT_GT(bytes(20, tag), bytes(3, tag));
        else
          EXPECT_EQ(bytes(20, tag), bytes(3, tag)) << name_of(tag, simd::Optim::adamw);
      }
    }
}

TEST(Layout, SelectiveKeepsAllButWhatOneBlockMakesAgain) {
  ShapeOptions o{.n_layers = 6, .n_micro_max = 1, .tied = false};
  const auto saved = [&](Activations activations) {
    o.activations = activations;
    StepShape shape = make_shape(o);
    for (BlockShape& b : shape.blocks)
      b.saved_bytes = 4096, b.saved_recomputed_bytes = 3072;
    int64_t n_bytes = 0;
    for (const Region& region : make_layout(shape).regions)
      if (region.name.find("saved") != std::string::npos) n_bytes += region.n_bytes;
    return n_bytes;
  };
  EXPECT_EQ(saved(Activations::keep), 8 * 4096);
  EXPECT_EQ(saved(Activations::selective), 8 * 1024 + 3072);
  EXPECT_EQ(saved(Activations::recompute), 4096);
  // Blocks without a backward have one region for all, whatever others keep.
  o.frozen = Frozen::first_blocks;
  EXPECT_EQ(saved(Activations::selective), 6 * 1024 + 4096);
}

TEST(Layout, SlotsHoldTheLargestBlockOnTheHostAndNoOther) {
  StepShape shape = make_shape({.n_layers = 2, .n_micro_max = 1, .tied = false});
  const Layout small = make_layout(shape);
  shape.blocks[1].n_elements += 1024;
  shape.blocks[1].tensors.push_back({shape.blocks[1].n_elements - 1024, 1024});
  EXPECT_EQ(make_layout(shape).region(make_layout(shape).weight_slots[0]).n_bytes,
            small.region(small.weight_slots[0]).n_bytes + 4096);
  for (BlockShape& b : shape.blocks)
    b.place = Place::device;
  EXPECT_TRUE(make_layout(shape).weight_slots.empty());
  EXPECT_TRUE(make_layout(shape).grad_slots.empty());
}

TEST(Layout, BorrowedTensorsHaveRoomBehindTheSegment) {
  const StepShape shape = make_shape({.compute = DType::bf16});
  const int head = shape.n_blocks() - 1;
  const BlockShape& block = shape.blocks[head];
  EXPECT_EQ(shape.borrowed_in_slot(head, 0), block.n_elements);
  EXPECT_EQ(shape.borrowed_in_slot(head, 1), block.n_elements + 768);  // 700 elements before
  EXPECT_EQ(shape.n_slot_elements(head), block.n_elements + 768 + 512);
  EXPECT_EQ(shape.borrowed_in_grads(head, 1), block.n_elements + 768);
  EXPECT_EQ(shape.n_grad_elements(head), block.n_elements + 768 + 512);
  EXPECT_TRUE(shape.tied(0));
  EXPECT_TRUE(shape.tied(head));
  EXPECT_FALSE(shape.tied(1));
}

}  // namespace
}  // namespace ferry::test
