#pragma once
// A small HTTP server with OpenAI's routes for the programs of this machine. Requests wait in a
// queue, and the thread that calls run() writes the answers one after another: there is one model.

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "src/serve/openai.h"

namespace ferry::serve {

struct ServerSettings {
  std::string host = "127.0.0.1";
  int port = 8080;           ///< 0: any that is free
  std::string api_key;       ///< empty: none is asked for
  std::string allow_origin;  ///< of web pages whose scripts may ask; empty: none
  std::string model;         ///< as /v1/models names it
};

/** Writes an answer; `take_text` gets it as it comes, and where `goes_on` says no the rest is not
 * wanted. May throw Error (of data: the request is refused) and ApiError. */
using Write = std::function<Written(const WritingRequest& request,
                                    const std::function<bool()>& goes_on,
                                    const std::function<void(std::string_view)>& take_text)>;

class Server {
 public:
  /** Listens from now on. Throws Error(machine) where the port is taken or the build has no server,
   * Error(usage) for an address that is not of this machine. */
  explicit Server(ServerSettings settings);
  ~Server();

  int port() const;
  /** Answers until `goes_on` says no; an answer that is being written then ends at once. */
  void run(const Write& write, const std::function<bool()>& goes_on);

 private:
  class Routes;
  std::unique_ptr<Routes> routes_;
};

/** False where this build has no HTTP library. */
bool has_server();

}  // namespace ferry::serve
