#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace orrery {

/// The reply of an HTTP server, its chunks put together.
struct HttpReply {
  int status = 0;  ///< 0: it closed the connection without a word.
  std::string head, body;
};

/// A connection to this machine as a stranger would open one: bytes go out as they are.
class RawConnection {
 public:
  explicit RawConnection(int port) : socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)} {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  RawConnection(RawConnection&& other) noexcept
      : socket_{std::exchange(other.socket_, -1)}, connected_{other.connected_} {}
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;
  ~RawConnection() {
    if (socket_ >= 0) ::close(socket_);
  }

  bool connected() const { return connected_; }
  bool send(const std::string& bytes) const {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::send(socket_, bytes.data() + done, bytes.size() - done, MSG_NOSIGNAL);
      if (count <= 0) return false;
      done += static_cast<std::size_t>(count);
    }
    return true;
  }
  /// Up to the other's end, or for so many seconds.
  std::string receive(double most_s) const {
    using Clock = std::chrono::steady_clock;
    const auto until = Clock::now() + std::chrono::duration<double>(most_s);
    std::string all;
    for (char buffer[1 << 16];;) {
      const double left = std::chrono::duration<double>(until - Clock::now()).count();
      pollfd polled{socket_, POLLIN, 0};
      if (left <= 0.0 || ::poll(&polled, 1, static_cast<int>(1e3 * left) + 1) <= 0) return all;
      const ssize_t count = ::recv(socket_, buffer, sizeof buffer, 0);
      if (count <= 0) return all;
      all.append(buffer, static_cast<std::size_t>(count));
    }
  }

 private:
  int socket_ = -1;
  bool connected_ = false;
};

inline HttpReply parse_reply(const std::string& bytes) {
  HttpReply reply;
  const std::size_t end = bytes.find("\r\n\r\n");
  if (end == bytes.npos || !bytes.starts_with("HTTP/1.1 ")) return reply;
  reply.status = std::stoi(bytes.substr(9, 3));
  reply.head = bytes.substr(0, end);
  reply.body = bytes.substr(end + 4);
  if (reply.head.find("Transfer-Encoding: chunked") == reply.head.npos) return reply;
  std::string whole;
  for (std::size_t at = 0; at < reply.body.size();) {
    const std::size_t line = reply.body.find("\r\n", at);
    if (line == reply.body.npos) break;
    const std::size_t size = std::stoul(reply.body.substr(at, line - at), nullptr, 16);
    whole += reply.body.substr(line + 2, size);
    at = line + 2 + size + 2;
    if (size == 0) break;
  }
  reply.body = whole;
  return reply;
}

/// `orrery explore`, started and waiting; it ends with this object.
class Explorer {
 public:
  explicit Explorer(const std::vector<std::string>& arguments = {}) {
    int ends[2];
    if (::pipe(ends) != 0) return;
    process_ = ::fork();
    if (process_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      ::close(ends[0]);
      const std::string program = ORRERY_TEST_BINARY_FOLDER "/orrery";
      std::vector<std::string> words{program, "explore", "--no-open"};
      words.insert(words.end(), arguments.begin(), arguments.end());
      std::vector<char*> list;
      for (std::string& word : words) list.push_back(word.data());
      list.push_back(nullptr);
      ::execv(program.c_str(), list.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    out_ = ends[0];
    while (said_.find("Ctrl-C") == said_.npos) {
      char buffer[4096];
      const ssize_t count = ::read(out_, buffer, sizeof buffer);
      if (count <= 0) break;
      said_.append(buffer, static_cast<std::size_t>(count));
    }
    const std::size_t begin = said_.find("http://127.0.0.1:");
    if (begin == said_.npos) return;
    address = said_.substr(begin, said_.find_first_of(" \n", begin) - begin);
    port = std::stoi(address.substr(17));
    const std::size_t slash = address.find('/', 17);
    token = address.substr(slash + 1, address.find('/', slash + 1) - slash - 1);
  }
  Explorer(const Explorer&) = delete;
  Explorer& operator=(const Explorer&) = delete;
  ~Explorer() {
    if (process_ > 0) end(SIGKILL);
    if (out_ >= 0) ::close(out_);
  }

  pid_t process() const { return process_; }
  /// Its exit code, or 128 and the signal.
  int end(int signal) {
    ::kill(process_, signal);
    int status = 0;
    ::waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// All processes that it started, and theirs.
  std::vector<pid_t> children() const { return children_of(process_); }
  static std::vector<pid_t> children_of(pid_t parent) {
    std::vector<pid_t> found;
    const std::string at = std::to_string(parent);
    FILE* list = ::fopen(("/proc/" + at + "/task/" + at + "/children").c_str(), "r");
    if (!list) return found;
    for (int child = 0; ::fscanf(list, "%d", &child) == 1;) {
      found.push_back(child);
      for (const pid_t theirs : children_of(child)) found.push_back(theirs);
    }
    ::fclose(list);
    return found;
  }

  std::string host() const { return "127.0.0.1:" + std::to_string(port); }
  using Headers = std::map<std::string, std::string>;
  /// A whole request as text. `other` headers replace the usual ones; "" leaves one out.
  std::string request(const std::string& method, const std::string& path, const std::string& body,
                      const Headers& other = {}) const {
    Headers headers{{"Host", host()}, {"Connection", "close"}};
    if (method == "POST") {
      headers["Content-Type"] = "application/json";
      headers["Content-Length"] = std::to_string(body.size());
    }
    for (const auto& [name, value] : other) headers[name] = value;
    std::string text = method + " " + path + " HTTP/1.1\r\n";
    for (const auto& [name, value] : headers)
      if (!value.empty()) text += name + ": " + value + "\r\n";
    return text + "\r\n" + body;
  }
  HttpReply ask(const std::string& request_text) const {
    const RawConnection connection{port};
    connection.send(request_text);
    return parse_reply(connection.receive(60.0));
  }
  HttpReply post(const std::string& question, const std::string& body) const {
    return ask(request("POST", "/" + token + "/api/" + question, body));
  }

  std::string address, token;
  int port = 0;

 private:
  pid_t process_ = -1;
  int out_ = -1;
  std::string said_;
};

}  // namespace orrery
