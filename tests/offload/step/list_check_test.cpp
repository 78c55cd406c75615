// The pager's lists against the hazard checker, and the checker against a walk through every order.

#include "tests/offload/step/list_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "tests/offload/step/shapes.h"

namespace ferry::test {
namespace {

bool run_long() {
  return std::getenv("FERRY_LONG") != nullptr;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (size_t i = 0; i < lines.size() && i < 5; ++i)
    text += lines[i] + "\n";
  return text;
}

/** A run of lists of each of these shapes; `change` may make others of them. Returns the pieces of
 * gradients that they write to a drive. */
template <class Change>
size_t expect_no_hazard(int n_shapes, Change&& change) {
  std::mt19937_64 random(1);
  size_t n_written = 0;
  for (int i = 0; i < n_shapes; ++i) {
    StepShape shape = random_shape(random);
    change(shape, random);
    const int first = 1 + static_cast<int>(random() % static_cast<uint64_t>(shape.n_micro_max));
    // Clipping may be switched on and off in a run.
    constexpr UpdateOrder kUpdateOrders[] = {UpdateOrder::after_decision,
                                             UpdateOrder::as_grads_arrive};
    const UpdateOrder order = kUpdateOrders[random() % 2], next = kUpdateOrders[random() % 2];
    const StepList full = training_list(shape, shape.n_micro_max, order);
    const StepList other = training_list(shape, first, next, /*each_decides=*/true);
    const StepList evaluation = evaluation_list(shape);
    const std::vector<ListRun> runs = {{&full, shape.n_micro_max, true, order},
                                       {&other, first, true, next, /*each_decides=*/true},
                                       {&evaluation, 1, false},
                                       {&full, shape.n_micro_max, true, order}};
    n_written += count_of(full, Verb::write_grads);
    const auto hazards = find_hazards(shape, runs);
    EXPECT_TRUE(hazards.empty()) << "shape " << i << " of seed 1\n" << joined(hazards);
    if (!hazards.empty()) break;
  }
  return n_written;
}

TEST(Lists, HaveNoHazardWhateverTheShape) {
  const size_t n_written =
      expect_no_hazard(run_long() ? 20000 : 1500, [](StepShape&, std::mt19937_64&) {});
  EXPECT_GT(n_written, 1000u);
}

TEST(Lists, HaveNoHazardWithWordsInPieces) {
  int n_cut = 0;
  expect_no_hazard(run_long() ? 10000 : 500, [&](StepShape& shape, std::mt19937_64& random) {
    if (shape.n_blocks() < 7) return;
    const int n_first = 1 + static_cast<int>(random() % 3),
              n_last = 2 + static_cast<int>(random() % 2);
    link_pieces(shape, n_first, n_last);
    ++n_cut;
  });
  EXPECT_GT(n_cut, 200);
}

TEST(Lists, OfAModelThatOnlyEvaluatesHaveNoHazard) {
  for (Placing placing : {Placing::gpu, Placing::host, Placing::mixed, Placing::weights_on_gpu,
                          Placing::states_on_gpu}) {
    const StepShape shape =
        make_shape({.placing = placing, .activations = Activations::host, .trains = false});
    const StepList list = evaluation_list(shape);
    const auto hazards = find_hazards(shape, {{&list, 1, false}, {&list, 1, false}});
    EXPECT_TRUE(hazards.empty()) << joined(hazards);
  }
}

/** Every edge of a list, one at a time. */
template <class Visit>
void for_each_edge(const StepList& list, Visit&& visit) {
  for (size_t i = 0; i < list.size(); ++i) {
    for (size_t e = 0; e < list[i].after.size(); ++e) {
      StepList dropped = list;
      dropped[i].after.erase(dropped[i].after.begin() + static_cast<std::ptrdiff_t>(e));
      visit(dropped, i);
    }
    for (size_t e = 0; e < list[i].after_update.size(); ++e) {
      StepList dropped = list;
      auto& edges = dropped[i].after_update;
      edges.erase(edges.begin() + static_cast<std::ptrdiff_t>(e));
      visit(dropped, i);
    }
    if (!list[i].after_commit) continue;
    StepList dropped = list;
    dropped[i].after_commit = false;
    visit(dropped, i);
  }
}

/** A list and the next step's. */
std::vector<ListRun> twice(const StepList& list, int n_micro, UpdateOrder order) {
  return {{&list, n_micro, true, order}, {&list, n_micro, true, order}};
}

TEST(Checker, AgreesWithEveryOrderOnEveryDroppedEdge) {
  int n_needed = 0, n_spare = 0;
  size_t n_states_most = 0, n_layer_inputs_sent = 0;
  std::mt19937_64 random(2);
  for (int n_layers : {0, 1, 2})
    for (int n_micro : {1, 2})
      for (auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical})
        for (auto activations :
             {Activations::keep, Activations::selective, Activations::recompute, Activations::host})
          for (bool tied : {false, true}) {
            if (!run_long() && random() % 2 != 0) continue;
            // Two slots: with one layer and two micro-batches, or two layers, something leaves
            // them.
            const bool layer_inputs_on_host = random() % 2 == 0;
            const UpdateOrder updates =
                random() % 2 ? UpdateOrder::after_decision : UpdateOrder::as_grads_arrive;
            const StepShape shape = make_shape({.n_layers = n_layers,
                                                .n_micro_max = n_micro,
                                                .order = order,
                                                .placing = Placing::host,
                                                .activations = activations,
                                                .layer_inputs_on_host = layer_inputs_on_host,
                                                .tied = tied,
                                                .n_weight_slots = 1 + n_layers,
                                                .n_grad_slots = 1 + n_layers});
            const StepList list = training_list(shape, n_micro, updates);
            n_layer_inputs_sent += count_of(list, Verb::send_layer_input);
            ASSERT_FALSE(can_go_wrong(shape, twice(list, n_micro, updates)));
            for_each_edge(list, [&](const StepList& dropped, size_t i) {
              size_t n_states = 0;
              const bool found = !find_hazards(shape, twice(dropped, n_micro, updates)).empty();
              const bool possible =
                  can_go_wrong(shape, twice(dropped, n_micro, updates), &n_states);
              EXPECT_EQ(found, possible) << "an edge into " << describe(list[i], shape);
              (found ? n_needed : n_spare) += 1;
              n_states_most = std::max(n_states_most, n_states);
            });
          }
  // The grid holds both kinds, and orders to choose from.
  EXPECT_GT(n_needed, 50);
  EXPECT_GT(n_spare, 10);
  EXPECT_GT(n_states_most, 100u);
  EXPECT_GT(n_layer_inputs_sent, 5u);
}

TEST(Checker, FindsASlotReusedOneBlockEarly) {
  const StepShape shape = make_shape({.n_layers = 4});
  StepList list = training_list(shape, 1);
  int n_found = 0, n_moved = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i].verb != Verb::fetch_weights || list[i].after.empty()) continue;
    StepList early = list;
    for (int& before : early[i].after) {
      int moved = before - 1;
      while (moved >= 0 && list[static_cast<size_t>(moved)].queue != QueueId::compute)
        --moved;
      before = std::max(moved, 0);
    }
    ++n_moved;
    n_found += !find_hazards(shape, {{&early, 1, true}}).empty();
  }
  EXPECT_GT(n_moved, 4);
  EXPECT_EQ(n_found, n_moved);
}

TEST(Checker, FindsWrongContent) {
  const StepShape shape = make_shape({.n_layers = 4});
  StepList list = training_list(shape, 1);
  const std::vector<RegionId> slots = make_layout(shape).weight_slots;
  for (Action& a : list)
    if (a.verb == Verb::forward && a.block == 3)
      for (Bytes& bytes : a.reads)
        if (bytes.role == Role::weights) bytes.region = slots[bytes.region == slots[0] ? 1 : 0];
  EXPECT_FALSE(find_hazards(shape, {{&list, 1, true}}).empty());
}

/** The list without one range of bytes of one action; a copy has two. */
StepList without(const StepList& list, size_t i, size_t which) {
  StepList less = list;
  auto &reads = less[i].reads, &writes = less[i].writes;
  const auto drop = [](auto& all, size_t at) {
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(at));
  };
  if (which < reads.size())
    drop(reads, which);
  else
    drop(writes, which - reads.size());
  if (is_move(less[i].verb))
    drop(which < list[i].reads.size() ? writes : reads, which % list[i].reads.size());
  return less;
}

/** Drops each edge of the shape's lists in turn: the checker finds a hazard where an order of the
 * actions can go wrong, and nowhere else. Returns how many edges were needed. */
int n_needed_edges(const StepShape& shape) {
  int n_needed = 0;
  for (UpdateOrder order : {UpdateOrder::after_decision, UpdateOrder::as_grads_arrive}) {
    const StepList list = training_list(shape, 1, order);
    EXPECT_FALSE(can_go_wrong(shape, twice(list, 1, order)));
    for_each_edge(list, [&](const StepList& dropped, size_t i) {
      const auto runs = twice(dropped, 1, order);
      const bool is_needed = can_go_wrong(shape, runs);
      EXPECT_EQ(!find_hazards(shape, runs).empty(), is_needed) << describe(list[i], shape);
      n_needed += is_needed;
    });
  }
  return n_needed;
}

TEST(Checker, AgreesWithEveryOrderOnEveryDroppedEdgeOfADrive) {
  int n_needed = 0;
  for (Placing placing : {Placing::drive, Placing::all_on_drive, Placing::grads_on_drive,
                          Placing::everything_on_drive})
    for (DType compute : {DType::f32, DType::bf16}) {
      const StepShape shape = make_shape({.n_layers = 0,
                                          .compute = compute,
                                          .n_micro_max = 1,
                                          .placing = placing,
                                          .tied = false,
                                          .n_state_slots = 1,
                                          .n_weight_windows = 1,
                                          .n_grad_windows = 1});
      n_needed += n_needed_edges(shape);
    }
  EXPECT_GT(n_needed, 40);
}

// One slot, and more of them than blocks.
TEST(Checker, AgreesWithEveryOrderOnEveryDroppedEdgeOfSlotsThatAreUpdated) {
  int n_needed = 0;
  for (int n_slots : {1, 2, 4})
    for (const auto& [compute, is_split] :
         {std::pair{DType::f32, false}, {DType::bf16, false}, {DType::bf16, true}}) {
      const bool sends_grads = n_slots < 4;
      const StepShape shape = make_shape(
          {.n_layers = n_slots == 1 ? 0 : 1,
           .compute = compute,
           .n_micro_max = 1,
           .placing = sends_grads ? Placing::states_on_gpu : Placing::states_and_grads_on_gpu,
           .tied = n_slots == 2,
           .n_weight_slots = n_slots,
           .n_grad_slots = 1,
           .split_master = is_split});
      n_needed += n_needed_edges(shape);
    }
  EXPECT_GT(n_needed, 50);
}

TEST(Checker, FindsBytesThatAreMissingOrWrong) {
  for (const Placing placing : {Placing::host, Placing::mixed, Placing::states_on_gpu,
                                Placing::states_and_grads_on_gpu, Placing::everything_on_drive})
    for (const auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical}) {
      const StepShape shape = make_shape({.n_layers = 4,
                                          .compute = DType::bf16,
                                          .n_micro_max = 2,
                                          .order = order,
                                          .placing = placing,
                                          .mixed_activations = true,
                                          .layer_inputs_on_host = placing == Placing::mixed,
                                          .state_piece_elements = 2048});
      const StepList list = training_list(shape, 2, UpdateOrder::as_grads_arrive);
      ASSERT_TRUE(find_hazards(shape, twice(list, 2, UpdateOrder::as_grads_arrive)).empty());
      int n_faults = 0;
      const auto expect_found = [&](const StepList& faulty, size_t i, const Bytes& bytes) {
        ++n_faults;
        EXPECT_FALSE(find_hazards(shape, twice(faulty, 2, UpdateOrder::as_grads_arrive)).empty())
            << describe(list[i], shape) << ", role " << static_cast<int>(bytes.role);
      };
      for (size_t i = 0; i < list.size(); ++i)
        for (size_t k = 0; k < list[i].reads.size() + list[i].writes.size(); ++k) {
          const bool is_read = k < list[i].reads.size();
          const Bytes& bytes =
              is_read ? list[i].reads[k] : list[i].writes[k - list[i].reads.size()];
          // Logits and scratch are for nobody; what an update reads of states it writes as well.
          if (bytes.role == Role::workspace || bytes.role == Role::dead ||
              (bytes.role == Role::batch && !is_read) || (bytes.role == Role::states && is_read))
            continue;
          expect_found(without(list, i, k), i, bytes);
          // Some of what a pass writes is for nobody, or for itself.
          if (!is_read && is_pass(list[i].verb)) continue;
          StepList moved = list;
          auto& at = is_read ? moved[i].reads[k] : moved[i].writes[k - list[i].reads.size()];
          at.offset += 8;
          expect_found(moved, i, bytes);
        }
      EXPECT_GT(n_faults, 500);
    }
}

TEST(Lists, UpdateAsGradientsArriveButForLateAndTiedBlocks) {
  for (auto order : {AccumulationOrder::horizontal, AccumulationOrder::vertical})
    for (bool tied : {false, true}) {
      const StepShape shape = make_shape({.n_layers = 5,
                                          .n_micro_max = 2,
                                          .order = order,
                                          .placing = Placing::mixed,
                                          .tied = tied,
                                          .some_update_late = true});
      const StepList list = training_list(shape, 2, UpdateOrder::as_grads_arrive);
      const auto index_of = [&](Verb verb, int b) {
        const auto at = std::ranges::find_if(list, [&](const Action& a) {
          return a.verb == verb && (b < 0 || a.block == b) &&
                 (verb != Verb::backward || a.micro == 1);
        });
        return at - list.begin();
      };
      for (int b = 0; b < shape.n_blocks(); ++b) {
        const BlockShape& block = shape.blocks[b];
        const bool arrives =
            block.place.updates() == Place::host && !block.updates_late && !shape.tied(b);
        const auto update = index_of(Verb::update, b);
        ASSERT_LT(update, std::ssize(list));
        EXPECT_EQ(update < index_of(Verb::decide, -1), arrives) << block.name;
        // Before the backward of the next block.
        if (arrives && b > 0) {
          EXPECT_LT(update, index_of(Verb::backward, b - 1)) << block.name;
        }
      }
    }
}

TEST(Lists, FetchEachBlockOncePerPassInVerticalOrder) {
  const StepShape shape = make_shape({.n_layers = 6,
                                      .n_micro_max = 4,
                                      .order = AccumulationOrder::vertical,
                                      .placing = Placing::host});
  auto fetches = [](const StepList& list) {
    return std::count_if(list.begin(), list.end(),
                         [](const Action& a) { return a.verb == Verb::fetch_weights; });
  };
  // Two slots: the last two blocks of the forward stay for the backward.
  EXPECT_EQ(fetches(training_list(shape, 4)), 8 + 6);
  StepShape horizontal = shape;
  horizontal.order = AccumulationOrder::horizontal;
  EXPECT_GT(fetches(training_list(horizontal, 4)), 3 * (8 + 6));
  for (BlockShape& b : horizontal.blocks)
    b.place = Place::device;
  EXPECT_EQ(fetches(training_list(horizontal, 4)), 0);
}

TEST(Lists, FetchWeightsThatStayOnceAStep) {
  const StepShape shape =
      make_shape({.n_layers = 6, .n_micro_max = 4, .placing = Placing::weights_on_gpu});
  const Layout layout = make_layout(shape);
  EXPECT_TRUE(layout.weight_slots.empty());
  const auto fetches = [](const StepList& list) { return count_of(list, Verb::fetch_weights); };
  EXPECT_EQ(fetches(make_training_list(shape, layout, 4)), 8u);
  EXPECT_EQ(fetches(make_evaluation_list(shape, layout)), 8u);
  EXPECT_EQ(fetches(make_evaluation_list(shape, layout, /*fetches_own_slots=*/false)), 0u);
}

TEST(Lists, UpdateWeightsOfTheHostInSlotsAndSendThemBack) {
  for (const auto& [is_split, sends_grads] :
       {std::pair{false, false}, {false, true}, {true, true}}) {
    const StepShape shape = make_shape(
        {.n_layers = 6,
         .compute = DType::bf16,
         .placing = sends_grads ? Placing::states_on_gpu : Placing::states_and_grads_on_gpu,
         .tied = false,
         .split_master = is_split});
    const Layout layout = make_layout(shape);
    EXPECT_EQ(layout.grad_slots.empty(), !sends_grads);
    EXPECT_EQ(layout.bytes_of(Tag::grads, Place::device) == 0, sends_grads);
    EXPECT_EQ(layout.bytes_of(Tag::weights, Place::device), 0);
    EXPECT_EQ(layout.bytes_of(Tag::state_0, Place::host), 0);
    const StepList list = make_training_list(shape, layout, 1);
    const auto decide = std::ranges::find(list, Verb::decide, &Action::verb);
    const StepList updates(decide, list.end());
    EXPECT_EQ(count_of(updates, Verb::update), 8u);
    EXPECT_EQ(count_of(updates, Verb::send_weights), 8u);
    // Weights that are the upper halves of the master are read: two are there still.
    EXPECT_EQ(count_of(updates, Verb::fetch_weights), is_split ? 6u : 0u);
    EXPECT_EQ(count_of(list, Verb::fetch_grads), sends_grads ? 8u : 0u);
  }
}

TEST(Lists, DoNotRecomputeWhatIsStillThere) {
  const StepShape shape =
      make_shape({.n_layers = 2, .activations = Activations::recompute, .tied = false});
  for (const Action& a : training_list(shape, 3))
    EXPECT_FALSE(a.verb == Verb::recompute && a.block == 3);
  StepShape vertical = shape;
  vertical.order = AccumulationOrder::vertical;
  int n_head = 0;
  for (const Action& a : training_list(vertical, 3))
    n_head += a.verb == Verb::recompute && a.block == 3;
  EXPECT_EQ(n_head, 3);  // three micro-batches share the region
}

TEST(Lists, SendEachLayerInputOnceAndFetchItOnceForTheBackward) {
  // Embeddings and 8 layers have an output that is read again.
  const auto shape_of = [](AccumulationOrder order, int n_slots) {
    return make_shape({.n_layers = 8,
                       .n_micro_max = 4,
                       .order = order,
                       .layer_inputs_on_host = true,
                       .tied = false,
                       .n_layer_input_slots = n_slots});
  };
  for (int n_slots : {2, 3, 5, 9}) {
    const StepShape shape = shape_of(AccumulationOrder::horizontal, n_slots);
    const StepList list = training_list(shape, 4);
    const auto n = 4 * static_cast<size_t>(9 - n_slots);  // the last stay in their slots
    EXPECT_EQ(count_of(list, Verb::send_layer_input), n) << n_slots << " slots";
    EXPECT_EQ(count_of(list, Verb::fetch_layer_input), n) << n_slots << " slots";
    for (const Action& a : list)
      if (a.verb == Verb::send_layer_input) {
        EXPECT_LT(a.block, 9 - n_slots);
      }
    const StepList evaluation = evaluation_list(shape);
    EXPECT_EQ(count_of(evaluation, Verb::send_layer_input), 0u);
    EXPECT_EQ(count_of(evaluation, Verb::fetch_layer_input), 0u);
  }
  // One micro-batch more than there are: the next forwards still find them all.
  const StepList vertical = training_list(shape_of(AccumulationOrder::vertical, 6), 4);
  EXPECT_EQ(count_of(vertical, Verb::send_layer_input), 4u * 8 - 2);
  EXPECT_EQ(count_of(vertical, Verb::fetch_layer_input), 4u * 8 - 2);
  // Fewer slots: forwards fetch too, what was sent is not sent again.
  const StepList tight = training_list(shape_of(AccumulationOrder::vertical, 3), 4);
  EXPECT_LE(count_of(tight, Verb::send_layer_input), 4u * 9);
  EXPECT_GT(count_of(tight, Verb::fetch_layer_input), 4u * 9);
}

TEST(Lists, SendLayerInputsBesideTheForwardThatReadsThemAndFetchThemAhead) {
  const StepShape shape = make_shape({.n_layers = 8,
                                      .n_micro_max = 1,
                                      .placing = Placing::gpu,
                                      .activations = Activations::recompute,
                                      .layer_inputs_on_host = true,
                                      .tied = false,
                                      .n_layer_input_slots = 3});
  const StepList list = training_list(shape, 1);
  const auto at = [&](int i) -> const Action& { return list[static_cast<size_t>(i)]; };
  int n_fetches = 0;
  for (const Action& a : list) {
    if (a.verb == Verb::send_layer_input) {
      // Its own forward and nothing later.
      ASSERT_EQ(a.after.size(), 1u);
      EXPECT_EQ(at(a.after[0]).verb, Verb::forward);
      EXPECT_EQ(at(a.after[0]).block, a.block);
    }
    if (a.verb != Verb::fetch_layer_input) continue;
    ++n_fetches;
    // For the backward of block + 1: two backwards are under way or to come when it may begin.
    for (int before : a.after)
      if (at(before).queue == QueueId::compute) {
        EXPECT_EQ(at(before).verb, Verb::backward);
        EXPECT_EQ(at(before).block, a.block + 4);
      }
  }
  EXPECT_EQ(n_fetches, 6);
}

TEST(Lists, SendOnlyLayerInputsThatHaveRoomOnTheHost) {
  std::mt19937_64 random(5);
  size_t n_sent = 0;
  for (int i = 0; i < 400; ++i) {
    const StepShape shape = random_shape(random);
    const Layout layout = make_layout(shape);
    for (int n_micro = 1; n_micro <= shape.n_micro_max; ++n_micro)
      for (const Action& a : make_training_list(shape, layout, n_micro))
        if (a.verb == Verb::send_layer_input) {
          ++n_sent;
          ASSERT_GE(a.writes[0].region, 0) << "shape " << i << " of seed 5";
          EXPECT_EQ(layout.region(a.writes[0].region).place, Place::host);
        }
  }
  EXPECT_GT(n_sent, 500u);
}

TEST(Lists, OfFrozenFirstBlocksSendNoneOfTheirOutputs) {
  StepShape shape = make_shape({.n_layers = 8, .layer_inputs_on_host = true, .tied = false});
  for (size_t b = 0; b < 4; ++b)
    for (TensorExtent& t : shape.blocks[b].tensors)
      t.trainable = false;
  arrange(shape);
  for (const Action& a : training_list(shape, 3))
    if (a.verb == Verb::send_layer_input) {
      EXPECT_GE(a.block, 3);  // what the first backward reads
    }
}

TEST(Lists, UpdateInTheOrderTheNextForwardNeeds) {
  const StepShape shape = make_shape({.placing = Placing::host});
  std::vector<int> order;
  for (const Action& a : training_list(shape, 1))
    if (a.verb == Verb::update) order.push_back(a.block);
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2, 3, 4}));
}

}  // namespace
}  // namespace ferry::test
