// A build without liburing.

#include <cerrno>

#include "offload/nvme/disk_queue.h"

namespace ferry {

std::unique_ptr<DiskQueue> make_uring_queue(std::shared_ptr<DiskQueueState> /*state*/, int& code) {
  code = ENOSYS;
  return nullptr;
}

}  // namespace ferry
