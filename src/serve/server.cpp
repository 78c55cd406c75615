#include "src/serve/server.h"

#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "src/base/error.h"
#include "src/base/print.h"

namespace ferry::serve {
namespace {

using namespace std::chrono_literals;

constexpr const char* kJson = "application/json";

/** A request and what has come of it; the thread of its connection waits for that. */
struct Task {
  WritingRequest request;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::string> pieces;  // of a stream
  std::optional<Written> written;
  std::optional<ApiError> error;
  std::atomic<bool> is_unwanted = false;

  bool has_ended() const { return written || error; }
  template <typename Change>
  void change(const Change& what) {
    {
      const std::lock_guard lock(mutex);
      what();
    }
    changed.notify_all();
  }
};

std::string new_id(bool is_chat) {
  static std::mt19937_64 random(std::random_device{}());
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  return fmt::format("{}-{:016x}", is_chat ? "chatcmpl" : "cmpl", random());
}

int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool is_loopback(std::string_view host) {
  return host == "127.0.0.1" || host == "::1" || host == "localhost";
}

/** "localhost:8080" without the port. */
std::string name_of_host(const std::string& header) {
  if (header.starts_with('[')) return header.substr(1, header.find(']') - 1);
  return header.substr(0, header.find(':'));
}

/** Equal, in a time that does not tell how many characters are. */
bool is_same_key(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

void refuse(httplib::Response& response, const ApiError& error) {
  response.status = error.status;
  response.set_content(json_of(error), kJson);
}

}  // namespace

class Server::Routes {
 public:
  explicit Routes(ServerSettings settings) : settings_(std::move(settings)) {
    // Two servers at one port would share its requests by chance.
    http_.set_socket_options([](int socket) {
      const int yes = 1;
      ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    http_.set_payload_max_length(size_t{64} << 20);
    http_.set_pre_routing_handler([this](const auto& request, auto& response) {
      return check(request, response) ? httplib::Server::HandlerResponse::Unhandled
                                      : httplib::Server::HandlerResponse::Handled;
    });
    add_routes();
    port_ = settings_.port == 0 ? http_.bind_to_any_port(settings_.host) : settings_.port;
    if (port_ <= 0 || (settings_.port != 0 && !http_.bind_to_port(settings_.host, port_)))
      throw Error(Fault::machine, "serve.listen",
                  fmt::format("cannot listen at {}:{}", settings_.host, settings_.port),
                  "another program may have the port: --port takes another one, and --host an "
                  "address of this machine");
    listening_ = std::thread([this] { http_.listen_after_bind(); });
  }
  ~Routes() {
    http_.stop();
    stop_all();
    listening_.join();
  }

  int port() const { return port_; }

  void run(const Write& write, const std::function<bool()>& goes_on) {
    while (goes_on()) {
      std::shared_ptr<Task> task;
      {
        std::unique_lock lock(mutex_);
        if (!waiting_changed_.wait_for(lock, 100ms, [&] { return !waiting_.empty(); })) continue;
        task = std::move(waiting_.front());
        waiting_.pop_front();
      }
      if (!task->is_unwanted) answer(*task, write, goes_on);
    }
    stop_all();
  }

 private:
  /** False: the request was refused. */
  bool check(const httplib::Request& request, httplib::Response& response) {
    if (!settings_.allow_origin.empty()) {
      response.set_header("Access-Control-Allow-Origin", settings_.allow_origin);
      response.set_header("Access-Control-Allow-Headers", "Content-Type, Authorization");
    }
    // A page of the web whose name leads to this machine may not ask (DNS rebinding).
    const std::string host = name_of_host(request.get_header_value("Host"));
    if (is_loopback(settings_.host) && !is_loopback(host)) {
      refuse(response, {403, "permission_error", fmt::format("this server is not '{}'", host)});
      return false;
    }
    const bool is_open = request.path == "/health" || request.method == "OPTIONS";
    if (!settings_.api_key.empty() && !is_open &&
        !is_same_key(request.get_header_value("Authorization"), "Bearer " + settings_.api_key)) {
      refuse(response, {401, "authentication_error", "the API key is missing or wrong"});
      return false;
    }
    return true;
  }

  void add_routes() {
    const auto models = [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(models_json(settings_.model, created_), kJson);
    };
    for (const char* path : {"/v1/models", "/models"})
      http_.Get(path, models);
    http_.Get("/health", [](const httplib::Request&, httplib::Response& response) {
      response.set_content(R"({"status":"ok"})", kJson);
    });
    http_.Options(
        ".*", [](const httplib::Request&, httplib::Response& response) { response.status = 204; });
    for (const char* path : {"/v1/chat/completions", "/chat/completions"})
      http_.Post(path,
                 [this](const auto& request, auto& response) { post(request, response, true); });
    for (const char* path : {"/v1/completions", "/completions"})
      http_.Post(path,
                 [this](const auto& request, auto& response) { post(request, response, false); });
    http_.set_error_handler([](const httplib::Request& request, httplib::Response& response) {
      if (!response.body.empty()) return;
      const bool is_known = request.path.find("/embeddings") != std::string::npos;
      const ApiError error =
          is_known ? ApiError{501, "not_supported_error", "this server makes no embeddings"}
          : response.status == 404
              ? ApiError{404, "not_found_error", fmt::format("there is no {}", request.path)}
              : ApiError{response.status, "invalid_request_error", "the request is no HTTP"};
      refuse(response, error);
    });
  }

  void post(const httplib::Request& request, httplib::Response& response, bool is_chat) {
    auto task = std::make_shared<Task>();
    try {
      task->request = parse_request(request.body, is_chat);
    } catch (const ApiError& error) {
      return refuse(response, error);
    }
    const AnswerForm form(is_chat, new_id(is_chat), seconds_now(), settings_.model);
    {
      const std::lock_guard lock(mutex_);
      if (has_stopped_) return refuse(response, {503, "unavailable_error", "the server ends"});
      waiting_.push_back(task);
    }
    waiting_changed_.notify_one();
    // The first piece or error decides the status.
    std::unique_lock lock(task->mutex);
    task->changed.wait(lock, [&] {
      return task->has_ended() || (task->request.streams && !task->pieces.empty());
    });
    if (task->error) return refuse(response, *task->error);
    if (!task->request.streams) return response.set_content(form.whole(*task->written), kJson);
    lock.unlock();
    stream(task, form, response);
  }

  static void stream(const std::shared_ptr<Task>& task,
                     const AnswerForm& form,
                     httplib::Response& response) {
    response.set_header("Cache-Control", "no-cache");
    response.set_chunked_content_provider(
        "text/event-stream",
        [task, form, is_first = true](size_t, httplib::DataSink& sink) mutable {
          std::string lines = std::exchange(is_first, false) ? form.first() : std::string();
          bool is_last = false;
          {
            std::unique_lock lock(task->mutex);
            task->changed.wait(lock, [&] { return task->has_ended() || !task->pieces.empty(); });
            for (; !task->pieces.empty(); task->pieces.pop_front())
              lines += form.piece(task->pieces.front());
            is_last = task->has_ended();
            if (task->error)
              lines += AnswerForm::failed(*task->error);
            else if (is_last)
              lines += form.last(*task->written, task->request.includes_usage);
          }
          const bool is_heard = sink.is_writable() && sink.write(lines.data(), lines.size());
          if (!is_heard) task->is_unwanted = true;
          if (is_heard && is_last) sink.done();
          return is_heard;
        },
        [task](bool) { task->is_unwanted = true; });
  }

  static void answer(Task& task, const Write& write, const std::function<bool()>& goes_on) {
    const auto fail = [&](ApiError error) { task.change([&] { task.error = std::move(error); }); };
    try {
      Written written = write(
          task.request, [&] { return goes_on() && !task.is_unwanted; },
          [&](std::string_view text) {
            if (task.request.streams) task.change([&] { task.pieces.emplace_back(text); });
          });
      if (!goes_on()) return fail({503, "unavailable_error", "the server ends"});
      task.change([&] { task.written = std::move(written); });
    } catch (const ApiError& error) {
      fail(error);
    } catch (const Error& error) {
      if (error.fault() == Fault::data) return fail({.message = error.what()});
      fail({500, "server_error", error.what()});
      log_line(error.what());
    }
  }

  void stop_all() {
    const std::lock_guard lock(mutex_);
    has_stopped_ = true;
    for (const auto& task : waiting_)
      task->change([&] { task->error = ApiError{503, "unavailable_error", "the server ends"}; });
    waiting_.clear();
  }

  const ServerSettings settings_;
  const int64_t created_ = seconds_now();
  httplib::Server http_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable waiting_changed_;
  std::deque<std::shared_ptr<Task>> waiting_;
  bool has_stopped_ = false;
  std::thread listening_;
};

Server::Server(ServerSettings settings) : routes_(std::make_unique<Routes>(std::move(settings))) {}

Server::~Server() = default;

int Server::port() const {
  return routes_->port();
}

void Server::run(const Write& write, const std::function<bool()>& goes_on) {
  routes_->run(write, goes_on);
}

bool has_server() {
  return true;
}

}  // namespace ferry::serve
