#pragma once
// Products and attention at the sizes that training meets, through the operations that training
// calls. Private to src/measure.

#include "models/core/tensor_table.h"
#include "src/measure/bench.h"

namespace ferry::measure {

/** Products for so long: a GPU leaves its idle clocks under load only. */
void wake(Bench& bench, double seconds);

/** The work of a step that computes in one type, as a GPU sees it: large products, and passes over
 * memory between them. Power decides a GPU's clock: alone for some milliseconds a product runs at a
 * clock that no step has. So each figure comes after this load, within a few milliseconds. It does
 * nothing on a CPU. */
class StepLoad {
 public:
  StepLoad(Bench& bench, DType type);
  void run(double seconds);
  /** The bound of a figure that is measured so. */
  Bound bound(double seconds);

 private:
  Bench& bench_;
  at::Tensor x_, w_, y_;                    // (rows, width), (width, width), (rows, width)
  float *sum_ = nullptr, *grad_ = nullptr;  // (kElements)
};

struct GemmGrid {
  std::vector<DType> types;
  std::vector<int64_t> rows, widths;
};
/** About `seconds` for the whole grid. */
std::vector<GemmRate> measure_gemms(Bench& bench,
                                    const GemmGrid& grid,
                                    double seconds,
                                    Allotted& allotted);

struct AttentionKind {
  DType type;
  AttentionBackend backend;
};
struct AttentionGrid {
  std::vector<AttentionKind> kinds;
  std::vector<int64_t> lengths, head_widths;
  int64_t tokens = 0;  ///< of a call: sequences of one length
  int64_t width = 0;   ///< of all heads
};
std::vector<AttentionRate> measure_attention(Bench& bench,
                                             const AttentionGrid& grid,
                                             double seconds,
                                             Allotted& allotted,
                                             std::vector<std::string>& skipped);

}  // namespace ferry::measure
