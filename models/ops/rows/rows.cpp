#include "models/ops/rows/rows.h"

#include "models/ops/dispatch.h"
#include "models/ops/scratch_sizes.h"

namespace ferry::ops {

void column_sum(const at::Tensor& x, const at::Tensor& out, Scratch& scratch) {
  const ColumnSum its = {.extent = extent_of(x), .x = data_of(x), .out = data_of(out)};
  const ScratchScope scope(scratch);
  void* sums = take_bytes(scratch, column_sum_scratch_bytes(its.extent.T, its.extent.W));
  kernels_for(x, kCpuRows, kCudaRows).column_sum(its, launch_on(x, sums));
}

void gather_rows(const at::Tensor& x, const at::Tensor& rows, at::Tensor& out) {
  const GatherRows its = {
      .extent = extent_of(out), .x = data_of(x), .rows = ints_of(rows), .out = data_of(out)};
  kernels_for(x, kCpuRows, kCudaRows).gather_rows(its, launch_on(x));
}

void scatter_rows(const at::Tensor& d_out, const at::Tensor& rows, at::Tensor& dx) {
  const ScatterRows its = {.extent = extent_of(dx),
                           .n = d_out.size(0),
                           .d_out = data_of(d_out),
                           .rows = ints_of(rows),
                           .dx = data_of(dx)};
  kernels_for(dx, kCpuRows, kCudaRows).scatter_rows(its, launch_on(dx));
}

void put_rows(const at::Tensor& from, const at::Tensor& rows, at::Tensor& x) {
  const PutRows its = {
      .extent = extent_of(from), .from = data_of(from), .rows = ints_of(rows), .x = data_of(x)};
  kernels_for(x, kCpuRows, kCudaRows).put_rows(its, launch_on(x));
}

}  // namespace ferry::ops
