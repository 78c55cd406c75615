#pragma once
// A meeting of ranks by NCCL, whose library is loaded when it is first needed. Private to this
// folder.

#include <nccl.h>

#include <chrono>
#include <functional>

#include "src/comm/nccl/nccl_link.h"

namespace ferry {

/** The functions of the library. */
struct Nccl {
  decltype(&ncclGetUniqueId) get_unique_id;
  decltype(&ncclCommInitRankConfig) init_rank;
  decltype(&ncclCommGetAsyncError) async_error;
  decltype(&ncclCommAbort) abort;
  decltype(&ncclGetErrorString) error_string;
  decltype(&ncclGetLastError) last_error;
  decltype(&ncclGroupStart) group_start;
  decltype(&ncclGroupEnd) group_end;
  decltype(&ncclSend) send;
  decltype(&ncclRecv) receive;
  decltype(&ncclAllGather) all_gather;
  decltype(&ncclReduceScatter) reduce_scatter;
  decltype(&ncclAllReduce) all_reduce;
};
/** Throws Error(machine) where it cannot be loaded. */
const Nccl& nccl();

/** A communicator whose calls do not block. Its rank's GPU is the thread's current one. */
class NcclMeeting {
 public:
  /** `share_id` gives every rank the first rank's id. */
  NcclMeeting(const Ranks& ranks,
              const NcclOptions& options,
              const std::function<void(ncclUniqueId& id)>& share_id);
  ~NcclMeeting();
  NcclMeeting(const NcclMeeting&) = delete;
  NcclMeeting& operator=(const NcclMeeting&) = delete;

  ncclComm_t get() const { return comm_; }
  /** Checks a call, which may go on after it has returned. */
  static void start(ncclResult_t result, const char* what);
  /** Waits until what was started is under way on the GPU. */
  void finish(const char* what);

 private:
  std::chrono::seconds deadline_;
  ncclComm_t comm_ = nullptr;
};

}  // namespace ferry
