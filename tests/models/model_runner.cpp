#include "tests/models/model_runner.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <random>

#include "models/core/nested_scales.h"
#include "models/ops/dispatch.h"
#include "src/base/bytes.h"
#include "src/base/error.h"

namespace ferry::test {

namespace {

at::Tensor aligned_bytes(int64_t n_bytes, at::Device device) {
  const int64_t n = round_up(std::max<int64_t>(n_bytes, 1), kTensorAlignment_bytes);
  if (!device.is_cpu()) return at::empty({n}, at::device(device).dtype(at::kByte));
  void* data = std::aligned_alloc(kTensorAlignment_bytes, static_cast<size_t>(n));
  return at::from_blob(
      data, {n}, [](void* bytes) { std::free(bytes); }, at::kByte);
}

}  // namespace

Region::Region(int64_t n_bytes, at::Device device) : bytes_(aligned_bytes(n_bytes, device)) {
  poison();
}

void Region::poison() {
  bytes_.fill_(0xff);
}

at::Tensor Region::at(int64_t offset_bytes, at::IntArrayRef shape, at::ScalarType type) const {
  const int64_t n = c10::multiply_integers(shape) * static_cast<int64_t>(c10::elementSize(type));
  FERRY_CHECK(offset_bytes + n <= n_bytes(), "{} + {} of {} bytes", offset_bytes, n, n_bytes());
  return at::from_blob(data() + offset_bytes, shape, bytes_.options().dtype(type));
}

TestBatch::TestBatch(const std::vector<int64_t>& lengths,
                     int64_t n_dummy,
                     int64_t vocab,
                     uint64_t seed) {
  std::mt19937_64 random(seed);
  cu_seqlens.push_back(0);
  for (const int64_t length : lengths) {
    tensors.shape.max_length = std::max(tensors.shape.max_length, length);
    for (int64_t i = 0; i < length; i++) {
      input_ids.push_back(static_cast<int32_t>(1 + random() % static_cast<uint64_t>(vocab - 1)));
      type_ids.push_back(i >= length / 2 ? 1 : 0);
      position_ids.push_back(static_cast<int32_t>(i));
    }
    cu_seqlens.push_back(static_cast<int32_t>(input_ids.size()));
  }
  const auto view = [](std::vector<int32_t>& x) {
    return at::from_blob(x.data(), {static_cast<int64_t>(x.size())},
                         at::TensorOptions().dtype(at::kInt));
  };
  tensors.n_seqs = static_cast<int64_t>(lengths.size());
  tensors.n_seqs_real = tensors.n_seqs - n_dummy;
  tensors.shape.tokens = static_cast<int64_t>(input_ids.size());
  tensors.shape.n_seqs_max = tensors.n_seqs;
  tensors.input_ids = view(input_ids);
  tensors.type_ids = view(type_ids);
  tensors.position_ids = view(position_ids);
  tensors.cu_seqlens = view(cu_seqlens);
  tensors.cu_seqlens_host = cu_seqlens;
}

void TestBatch::label_next_tokens() {
  tensors.labels = at::full({tensors.shape.tokens}, -100, at::kInt);
  for (int64_t s = 0; s < tensors.n_seqs_real; s++) {
    const int64_t begin = cu_seqlens[s], n = cu_seqlens[s + 1] - begin - 1;
    tensors.labels.narrow(0, begin, n).copy_(tensors.input_ids.narrow(0, begin + 1, n));
  }
}

BatchTensors on_device(at::Device device, BatchTensors batch) {
  for (at::Tensor* x : {&batch.input_ids, &batch.type_ids, &batch.position_ids, &batch.cu_seqlens,
                        &batch.labels, &batch.label_rows}) {
    if (x->defined()) *x = x->to(device);
  }
  return batch;
}

namespace {

/** Blocks of any codes, whose values are below about 0.1. */
void fill_blocks(const StoredMatrix& part, std::byte* to) {
  std::mt19937 random(11);
  const auto n_bytes = static_cast<size_t>(part.rows * part.row_bytes);
  const auto block_bytes =
      static_cast<size_t>(part.row_bytes / (part.columns / columns_multiple(part.storage)));
  for (size_t i = 0; i < n_bytes; ++i)
    to[i] = static_cast<std::byte>(random());
  const auto set_half = [&](size_t at, int high) {  // an fp16 of about 2^(high / 4 - 15)
    to[at + 1] = static_cast<std::byte>(high + static_cast<int>(random() % 4));
  };
  for (size_t block = 0; block < n_bytes; block += block_bytes) {
    if (part.storage == Storage::mxfp4)
      to[block] = static_cast<std::byte>(121 + random() % 3);
    else if (part.storage == Storage::q6_k)
      set_half(block + 208, 0x02);
    else
      set_half(block, part.storage == Storage::q4_k ? 0x04 : 0x10);
    if (part.storage == Storage::q4_1) set_half(block + 2, 0x20);
    if (part.storage == Storage::q4_k) set_half(block + 2, 0x08);
  }
}

}  // namespace

at::Tensor stored(const StoredParts& parts, const at::Tensor& values) {
  if (!is_quantised(parts.front().storage)) return values.to(scalar_type_of(parts.front().type));
  at::Tensor bytes = at::zeros({parts.back().end}, at::kByte);
  auto* to = static_cast<std::byte*>(bytes.data_ptr());
  for (const StoredMatrix& part : parts) {
    if (has_blocks(part.storage)) {
      fill_blocks(part, to + part.begin);
      continue;
    }
    const at::Tensor rows = values.narrow(0, part.first_row, part.rows).contiguous();
    std::vector<float> scales(static_cast<size_t>(part.rows * part.row_scales));
    quantise(part, {rows.const_data_ptr<float>(), static_cast<size_t>(rows.numel())},
             to + part.begin, scales.data());
    if (!part.is_nested()) {
      std::memcpy(to + part.scales_begin, scales.data(), scales.size() * sizeof(float));
      continue;
    }
    nest(scales, {to + part.scales_begin, scales.size()},
         {reinterpret_cast<float*>(to + part.nested_begin), static_cast<size_t>(part.n_nested())});
  }
  return bytes;
}

at::Tensor values_of(const StoredParts& parts, const at::Tensor& stored) {
  if (!is_quantised(parts.front().storage)) return stored.to(at::kFloat);
  const int64_t columns = parts.front().columns;
  at::Tensor values = at::empty({parts.back().first_row + parts.back().rows, columns});
  const auto* bytes = static_cast<const std::byte*>(stored.const_data_ptr());
  for (const StoredMatrix& part : parts)
    for (int64_t row = 0; row < part.rows; ++row) {
      const int64_t first = row * part.row_scales;
      std::vector<float> scales(static_cast<size_t>(part.row_scales));
      if (part.is_nested())
        unnest(bytes + part.scales_begin + first,
               reinterpret_cast<const float*>(bytes + part.nested_begin), first, scales);
      else
        std::memcpy(scales.data(), bytes + part.scales_begin + first * 4, scales.size() * 4);
      dequantise(part, bytes + part.begin + row * part.row_bytes, scales.data(), 0,
                 {values.mutable_data_ptr<float>() + (part.first_row + row) * columns,
                  static_cast<size_t>(columns)});
    }
  return values;
}

ModelRunner::ModelRunner(ModelTable table,
                         LossKind loss,
                         const BatchShape& shape,
                         at::Device device)
    : table_(std::move(table)), device_(device) {
  const auto region = [&](int64_t n_bytes) { return std::make_unique<Region>(n_bytes, device); };
  const at::ScalarType compute = scalar_type_of(table_.compute);
  const int64_t element_bytes = static_cast<int64_t>(size_of(table_.compute));
  blocks_.resize(table_.blocks.size());
  for (size_t b = 0; b < blocks_.size(); b++) {
    const BlockTable& spec = table_.blocks[b];
    RunBlock& run = blocks_[b];
    run.code = make_block(table_, static_cast<int>(b), loss);
    run.weights = region(spec.n_segment_elements * element_bytes);
    run.grads = region(spec.n_segment_elements * element_bytes);
    for (const ParamSpec& p : spec.params) {
      run.memory.params.push_back(run.weights->at(p.offset * element_bytes,
                                                  p.stored_shape(table_.compute),
                                                  scalar_type_of(p.type(table_.compute))));
      run.memory.grads.push_back(p.storage == Storage::compute
                                     ? run.grads->at(p.offset * element_bytes, p.shape, compute)
                                     : at::Tensor());
    }
    for (const BorrowedParam& from : spec.borrowed) {
      const ParamSpec& p = table_.blocks[from.block].params[from.param];
      run.borrowed_grads = region(p.n_elements * element_bytes);
      run.memory.params.push_back(blocks_[from.block].memory.params[from.param]);
      run.memory.grads.push_back(run.borrowed_grads->at(0, p.shape, compute));
    }
    const std::vector<SavedSpec> saved = spec.saved(shape);
    run.saved = region(laid_out_bytes(saved));
    run.memory.room = shape;
    int64_t offset = 0;
    for (const SavedSpec& s : saved) {
      run.memory.saved.push_back(run.saved->at(offset, s.shape, scalar_type_of(s.dtype)));
      offset += round_up(s.n_bytes(), kTensorAlignment_bytes);
    }
    const ScratchNeed need = spec.scratch(shape);
    forward_bytes_.push_back(need.forward_bytes);
    backward_bytes_.push_back(need.backward_bytes);
  }
  forward_scratch_ = region(*std::max_element(forward_bytes_.begin(), forward_bytes_.end()));
  backward_scratch_ = region(*std::max_element(backward_bytes_.begin(), backward_bytes_.end()));
  for (const ModelValue& value : table_.values)
    passed_.push_back(region(value.n_bytes(shape)));
}

std::vector<at::Tensor> ModelRunner::ports_of(size_t b, const BatchShape& shape, bool is_backward) {
  std::vector<at::Tensor> tensors;
  for (const Port& port : table_.blocks[b].ports) {
    if (tensors.emplace_back(); port.of(is_backward) == PortUse::none) continue;
    const ModelValue& its = table_.values[port.value];
    const int64_t n = rows_of(its.rows, shape);
    const std::array<int64_t, 2> rows = {n, its.columns}, columns = {its.columns, n};
    tensors.back() = passed_[static_cast<size_t>(port.value)]->at(0, its.by_column ? columns : rows,
                                                                  scalar_type_of(its.type));
  }
  return tensors;
}

void ModelRunner::randomise(uint64_t seed, float std) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal(0, std);
  for (size_t b = 0; b < blocks_.size(); b++) {
    blocks_[b].weights->poison();
    for (size_t i = 0; i < table_.blocks[b].params.size(); i++) {
      const ParamSpec& spec = table_.blocks[b].params[i];
      at::Tensor value = at::zeros(spec.shape);
      float* x = value.data_ptr<float>();
      for (int64_t k = 0; k < spec.n_values(); k++)
        x[k] = normal(random) + (spec.init == Init::ones ? 1.0f : 0.0f);
      if (!spec.storage.is_compute()) value = stored(spec.stored(table_.compute), value);
      blocks_[b].memory.params[i].copy_(value);
    }
  }
}

int ModelRunner::block_index(const std::string& name) const {
  for (size_t b = 0; b < blocks_.size(); b++) {
    if (table_.blocks[b].name == name) return static_cast<int>(b);
  }
  FERRY_CHECK(false, "no block {}", name);
  return -1;
}

void ModelRunner::poison() {
  for (RunBlock& run : blocks_) {
    for (Region* region : {run.grads.get(), run.borrowed_grads.get(), run.saved.get()}) {
      if (region != nullptr) region->poison();
    }
  }
  for (const auto& value : passed_)
    value->poison();
  forward_scratch_->poison();
  backward_scratch_->poison();
}

float ModelRunner::forward(const RandomKey& key, const BatchTensors& batch, at::Tensor logits) {
  double sum = 0;
  for (size_t b = 0; b < blocks_.size(); b++) {
    RunBlock& run = blocks_[b];
    RandomKey mine = key;
    mine.block = table_.blocks[b].random_block;
    Scratch scratch(forward_scratch_->data(), forward_bytes_[b], device_);
    run.memory.scratch = &scratch;
    const bool has_loss = table_.blocks[b].has_loss;
    at::Tensor loss = has_loss ? at::zeros({}, at::device(device_)) : at::Tensor();
    run.code->forward(mine, batch, run.memory, ports_of(b, batch.shape, false), loss, logits);
    run.forward_peak = scratch.peak_bytes();
    if (has_loss) sum += loss.item<double>();
  }
  return static_cast<float>(sum);
}

void ModelRunner::backward(const RandomKey& key, const BatchTensors& batch) {
  for (const int block : table_.backwards) {
    const auto b = static_cast<size_t>(block);
    RunBlock& run = blocks_[b];
    RandomKey mine = key;
    mine.block = table_.blocks[b].random_block;
    Scratch scratch(backward_scratch_->data(), backward_bytes_[b], device_);
    run.memory.scratch = &scratch;
    run.code->backward(mine, batch, run.memory, ports_of(b, batch.shape, true));
    run.backward_peak = scratch.peak_bytes();
  }
}

namespace {

/** The rows in the order of the file. */
at::Tensor in_groups(const at::Tensor& rows, const HfRowGroups& groups) {
  std::vector<at::Tensor> parts;
  for (int64_t group = 0; group < groups.n_groups; group++) {
    int64_t begin = 0;
    for (int64_t n : groups.part_rows) {
      parts.push_back(rows.narrow(0, begin + group * n, n));
      begin += groups.n_groups * n;
    }
  }
  return parts.empty() ? rows : at::cat(parts);
}

}  // namespace

std::map<std::string, at::Tensor> ModelRunner::by_hf_name(bool grads) {
  std::map<std::string, at::Tensor> result;
  for (const HfEntry& entry : table_.hf_names) {
    const BlockMemory& memory = blocks_[entry.block].memory;
    at::Tensor whole = (grads ? memory.grads : memory.params)[entry.param].to(at::kFloat);
    for (size_t b = 0; grads && b < blocks_.size(); b++) {
      const BlockTable& spec = table_.blocks[b];
      for (size_t i = 0; i < spec.borrowed.size(); i++) {
        if (spec.borrowed[i].block == entry.block && spec.borrowed[i].param == entry.param)
          whole = whole.add(blocks_[b].memory.grads[spec.params.size() + i]);
      }
    }
    const at::Tensor part = in_groups(whole.narrow(0, entry.row_begin, entry.rows), entry.groups);
    if (!entry.is_whole()) {
      at::Tensor& pieces = result[entry.hf_name];
      pieces = pieces.defined() ? at::cat({pieces, part}) : part;
      continue;
    }
    result[entry.hf_name] = (entry.transposed ? part.t() : part)
                                .reshape(entry.hf_shape)
                                .clone(at::MemoryFormat::Contiguous);
  }
  return result;
}

void ModelRunner::set(const HfEntry& entry, const at::Tensor& of_file) {
  at::Tensor part = entry.transposed ? of_file.t() : of_file;
  if (!entry.is_whole()) part = part.narrow(0, entry.file_row, entry.rows);
  if (const HfRowGroups& groups = entry.groups; groups.n_groups > 0) {
    const int64_t group_rows = part.size(0) / groups.n_groups;
    std::vector<at::Tensor> parts;
    int64_t begin = 0;
    for (const int64_t rows : groups.part_rows) {
      for (int64_t g = 0; g < groups.n_groups; ++g)
        parts.push_back(part.narrow(0, g * group_rows + begin, rows));
      begin += rows;
    }
    part = at::cat(parts);
  }
  param(entry.block, entry.param).narrow(0, entry.row_begin, entry.rows).copy_(part);
}

std::map<std::string, at::Tensor> ModelRunner::hf_grads() {
  return by_hf_name(true);
}

std::map<std::string, at::Tensor> ModelRunner::hf_params() {
  return by_hf_name(false);
}

}  // namespace ferry::test
