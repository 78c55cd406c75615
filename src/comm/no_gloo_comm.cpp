// A build without Gloo's headers.

#include "src/base/error.h"
#include "src/comm/local_comm.h"
#include "src/comm/rendezvous.h"

namespace ferry {

bool has_gloo() {
  return false;
}

std::unique_ptr<Comm> connect(const RankEnvironment& environment, ConnectOptions /*options*/) {
  if (environment.world == 1) return std::make_unique<LocalComm>();
  throw Error(Fault::usage, "comm.connect", "this build of Ferry cannot connect several ranks",
              "install Gloo's headers (libgloo-dev) and build again");
}

}  // namespace ferry
