// M/M/1 at utilisation 0.9: one arrival and one departure a customer. Its mean time in system is known, 10 mean
// services, so the benchmark also shows that the work was done.
#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <deque>

#include "sim/distribution.h"
#include "sim/engine.h"
#include "sim/random.h"
#include "sim/time.h"

namespace vcpusim {
namespace {

constexpr Duration kMeanService = std::chrono::microseconds(9);
constexpr Duration kMeanInterarrival = std::chrono::microseconds(10);
constexpr std::int64_t kCustomers = 1'000'000;

class Station {
 public:
  Station()
      : arrival_(engine_.add_timer<&Station::on_arrival>(*this)),
        departure_(engine_.add_timer<&Station::on_departure>(*this)) {}

  void run() {
    engine_.schedule(arrival_, engine_.now() + interarrival_.draw(arrivals_));
    engine_.run_until(kNever);
  }

  std::uint64_t events() const { return engine_.events(); }
  double mean_services_in_system() const {
    return static_cast<double>(total_.count()) / static_cast<double>(departed_) /
           static_cast<double>(kMeanService.count());
  }

 private:
  void on_arrival() {
    present_.push_back(engine_.now());
    if (present_.size() == 1) serve();
    engine_.schedule(arrival_, engine_.now() + interarrival_.draw(arrivals_));
  }

  void on_departure() {
    total_ += engine_.now() - present_.front();
    present_.pop_front();
    if (++departed_ == kCustomers) return engine_.stop();
    if (!present_.empty()) serve();
  }

  void serve() { engine_.schedule(departure_, engine_.now() + service_.draw(services_)); }

  Engine engine_;
  Engine::TimerId arrival_;
  Engine::TimerId departure_;
  RandomStream arrivals_{1, "mm1", "arrival"};
  RandomStream services_{1, "mm1", "service"};
  Distribution interarrival_ = Distribution::exponential(kMeanInterarrival);
  Distribution service_ = Distribution::exponential(kMeanService);
  std::deque<SimTime> present_;  // arrival times; front() is served
  Duration total_{};             // time in system of all who have left
  std::int64_t departed_ = 0;
};

void mm1(benchmark::State& state) {
  std::uint64_t events = 0;
  double mean = 0;
  for (auto _ : state) {
    Station station;
    station.run();
    events += station.events();
    mean = station.mean_services_in_system();
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(events));
  state.counters["mean_services_in_system"] = mean;
  // The standard error over a million customers is 0.19: neighbours in the queue share their fate.
  if (std::abs(mean - 10) > 0.5) state.SkipWithError("the mean time in system is not that of M/M/1");
}

BENCHMARK(mm1)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace vcpusim
