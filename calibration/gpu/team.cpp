#include "calibration/gpu/team.hpp"

#include "calibration/gpu/cuda.hpp"

#ifndef ORRERY_HAVE_NCCL

namespace orrery::calibration {

struct Team::Members {};
bool Team::possible() { return false; }
Team::Team() = default;
Team::Team(int, int, int, const std::string&) {
  throw Unsupported{"orrery-gpu was built without NCCL"};
}
Team::~Team() = default;
Measurement Team::measure(const Case&, const StoppingLimits&) {
  throw Unsupported{"orrery-gpu was built without NCCL"};
}
void Team::serve() {}
void Team::dismiss() {}

}  // namespace orrery::calibration

#else

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include "calibration/gpu/collective.hpp"

namespace orrery::calibration {
namespace {

constexpr int patience_s = 120;

void publish(const ncclUniqueId& id, const std::string& file) {
  if (std::filesystem::exists(file))
    fail_input({file, ""}, "exists already", "remove it: it may be of an earlier run");
  const std::string part = file + ".part";
  std::ofstream out{part, std::ios::binary};
  out.write(id.internal, sizeof id.internal);
  out.close();
  std::error_code error;
  if (out) std::filesystem::rename(part, file, error);
  if (!out || error)
    fail_input({file, ""}, "cannot be written", "name a file in a folder that all ranks share");
}

ncclUniqueId await(const std::string& file) {
  for (int tenths = 0; tenths < 10 * patience_s; ++tenths) {
    ncclUniqueId id;
    std::ifstream in{file, std::ios::binary};
    if (in.read(id.internal, sizeof id.internal)) return id;
    std::this_thread::sleep_for(std::chrono::milliseconds{100});
  }
  fail_input({file, ""}, "did not come within two minutes",
             "is rank 0 running, and is the folder shared?");
}

// Rank 0 sends it to the others before each case: the limits and, as text, the case.
struct Order {
  double noise = 0.0, time_s = 0.0;
  char text[1024] = "";  // Empty: done.
};

}  // namespace

struct Team::Members {
  int rank = 0;
  std::map<int, std::vector<ncclComm_t> > local;  // One process: by number of ranks.
  std::unique_ptr<CollectiveRank> own;            // Several processes.
  ncclComm_t joined = nullptr;

  Order broadcast(Order order) {
    DeviceArray<char> on_device{static_cast<std::int64_t>(sizeof order)};
    Stream stream;
    CUDA_CHECK(cudaMemcpy(on_device.data(), &order, sizeof order, cudaMemcpyHostToDevice));
    CUDA_CHECK(cudaDeviceSynchronize());
    NCCL_CHECK(ncclBroadcast(on_device.data(), on_device.data(), sizeof order, ncclChar, 0, joined,
                             stream));
    CUDA_CHECK(cudaStreamSynchronize(stream));
    CUDA_CHECK(cudaMemcpy(&order, on_device.data(), sizeof order, cudaMemcpyDeviceToHost));
    return order;
  }
};

bool Team::possible() { return true; }

Team::Team() : members_{std::make_unique<Members>()} {}

Team::Team(int rank, int ranks, int device, const std::string& file)
    : members_{std::make_unique<Members>()} {
  members_->rank = rank;
  ncclUniqueId id;
  if (rank == 0) {
    NCCL_CHECK(ncclGetUniqueId(&id));
    publish(id, file);
  } else {
    id = await(file);
  }
  CUDA_CHECK(cudaSetDevice(device));
  NCCL_CHECK(ncclCommInitRank(&members_->joined, ranks, id, rank));
  members_->own = std::make_unique<CollectiveRank>(members_->joined, rank, ranks);
}

Team::~Team() {
  if (!members_) return;
  members_->own.reset();
  if (members_->joined) ncclCommDestroy(members_->joined);
  for (auto& [ranks, all] : members_->local)
    for (const ncclComm_t one : all) ncclCommDestroy(one);
}

Measurement Team::measure(const Case& what, const StoppingLimits& limits) {
  const int ranks = static_cast<int>(what.size("ranks"));
  if (members_->own) {
    if (ranks != members_->own->ranks())
      throw Unsupported{"this run has " + std::to_string(members_->own->ranks()) + " ranks"};
    Json::Object json;
    write_case(json, what);
    Order order{limits.noise, limits.time_s, ""};
    std::snprintf(order.text, sizeof order.text, "%s", Json{json}.text().c_str());
    members_->broadcast(order);
    return members_->own->measure(what, limits);
  }
  int gpus = 0, device = 0;
  CUDA_CHECK(cudaGetDeviceCount(&gpus));
  CUDA_CHECK(cudaGetDevice(&device));
  if (ranks > gpus)
    throw Unsupported{"there are " + std::to_string(gpus) +
                      " GPUs; for more, start a process on each"};
  std::vector<ncclComm_t>& all = members_->local[ranks];
  if (all.empty()) {
    all.resize(static_cast<std::size_t>(ranks));
    NCCL_CHECK(ncclCommInitAll(all.data(), ranks, nullptr));
    CUDA_CHECK(cudaSetDevice(device));
  }
  Measurement result;
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      try {
        CUDA_CHECK(cudaSetDevice(rank));
        CollectiveRank one{all[static_cast<std::size_t>(rank)], rank, ranks};
        Measurement measured = one.measure(what, limits);
        if (rank == 0) result = std::move(measured);
      } catch (const Unsupported&) {  // All ranks come to the same end.
        if (rank == 0) failure = std::current_exception();
      } catch (const DeviceError&) {
        if (rank == 0) failure = std::current_exception();
      }
    });
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
  return result;
}

void Team::serve() {
  while (true) {
    const Order order = members_->broadcast({});
    if (order.text[0] == '\0') return;
    const Json json = Json::parse(order.text, "rank 0");
    StoppingLimits limits;
    limits.noise = order.noise;
    limits.time_s = order.time_s;
    try {
      members_->own->measure(read_case({json, {"rank 0", ""}}), limits);
    } catch (const Unsupported&) {
    } catch (const DeviceError&) {  // Rank 0 meets it too, and reports it.
    }
  }
}

void Team::dismiss() {
  if (members_ && members_->own && members_->rank == 0) members_->broadcast({});
}

}  // namespace orrery::calibration

#endif
