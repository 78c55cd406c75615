#pragma once
// A device that passes all calls on to another device, for tests that watch or change some of them.

#include <memory>

#include "offload/device/device.h"

namespace ferry::test {

class WrappedDevice : public Device {
 public:
  explicit WrappedDevice(std::unique_ptr<Device> device) : device_(std::move(device)) {}

  void submit(QueueId queue, std::function<void()> work) override {
    device_->submit(queue, std::move(work));
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
};

}  // namespace ferry::test
