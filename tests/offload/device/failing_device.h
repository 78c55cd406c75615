#pragma once
// A device whose n-th submitted work throws, before or after what it would have done: a fault of
// any queue's worker, at any action, on any device.

#include <memory>
#include <stdexcept>

#include "offload/device/device.h"

namespace ferry::test {

struct PlantedFault {
  int n = -1;             ///< of the works submitted; -1: none
  bool is_after = false;  ///< its effect is there, or under way on a GPU
};

class FailingDevice final : public Device {
 public:
  FailingDevice(std::unique_ptr<Device> device, PlantedFault fault)
      : device_(std::move(device)), fault_(fault) {}
  int n_submitted() const { return n_submitted_; }

  void submit(QueueId queue, std::function<void()> work) override {
    if (n_submitted_++ != fault_.n) return device_->submit(queue, std::move(work));
    device_->submit(queue, [work = std::move(work), is_after = fault_.is_after] {
      if (is_after) work();
      throw std::runtime_error("planted");
    });
  }

  std::string name() const override { return device_->name(); }
  bool is_cuda() const override { return device_->is_cuda(); }
  std::unique_ptr<Reservation> reserve(Place place,
                                       int64_t n_bytes,
                                       const FirstTouch& touch,
                                       const ByteRange& copied) override {
    return device_->reserve(place, n_bytes, touch, copied);
  }
  PinnedBytes pinned_bytes() const override { return device_->pinned_bytes(); }
  EventId make_event(QueueId queue) override { return device_->make_event(queue); }
  void record(EventId event) override { device_->record(event); }
  void wait(QueueId queue, EventId event) override { device_->wait(queue, event); }
  bool wait_host(EventId event, std::chrono::milliseconds patience) override {
    return device_->wait_host(event, patience);
  }
  bool happened(EventId event) override { return device_->happened(event); }
  StampId stamp(QueueId queue) override { return device_->stamp(queue); }
  double seconds_of(StampId stamp) override { return device_->seconds_of(stamp); }
  void forget_stamps() override { device_->forget_stamps(); }
  void drain() override { device_->drain(); }
  void fail(std::exception_ptr failure) override { device_->fail(std::move(failure)); }
  void copy(QueueId queue, void* dst, const void* src, int64_t n_bytes) override {
    device_->copy(queue, dst, src, n_bytes);
  }
  void await_copies() override { device_->await_copies(); }
  DeviceMath& math() override { return device_->math(); }
  void poison(void* slot, int64_t n_bytes) override { device_->poison(slot, n_bytes); }
  void* compute_stream() override { return device_->compute_stream(); }
  void* collective_stream() override { return device_->collective_stream(); }

 private:
  std::unique_ptr<Device> device_;
  PlantedFault fault_;
  int n_submitted_ = 0;
};

}  // namespace ferry::test
