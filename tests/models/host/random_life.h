// vCPUs to whom anything happens, to look for what a scheduler overlooks. FakeHost checks its contract meanwhile.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/random.h"
#include "tests/support/fake_host.h"

namespace vcpusim::testing_support {

// Up to 14 vCPUs of up to 5 VMs, a third of them restricted to one or two of `pcpus` pCPUs.
inline std::vector<FakeVcpu> random_vcpus(RandomStream& random, std::uint32_t pcpus) {
  const auto below = [&](std::uint32_t bound) { return static_cast<std::uint32_t>(random.below(bound)); };
  std::vector<FakeVcpu> vcpus(1 + below(14));
  for (FakeVcpu& v : vcpus) {
    v.vm = below(5);
    v.weight = 1 + below(4096);
    if (below(3) != 0) continue;
    const std::uint32_t first = below(pcpus);
    v.affinity = only({first, below(pcpus)});
  }
  return vcpus;
}

// A third of the vCPUs halt and wake all the time; now and then one yields, or is throttled for a while.
inline void live_at_random(FakeHost& host, RandomStream& random, int steps) {
  const auto vcpus = static_cast<VcpuIndex>(host.vcpus().size());
  const auto up_to = [&](std::uint64_t us) {
    return std::chrono::microseconds(1 + static_cast<std::int64_t>(random.below(us)));
  };
  for (VcpuIndex v = 0; v < vcpus; v += 1 + static_cast<VcpuIndex>(random.below(5))) {
    host.burst(v, up_to(5000), up_to(5000));
  }
  host.start_all();
  for (int step = 0; step < steps; ++step) {
    host.run_for(up_to(1500));
    const auto v = static_cast<VcpuIndex>(random.below(vcpus));
    const auto u = static_cast<VcpuIndex>(random.below(vcpus));
    switch (random.below(4)) {
      case 0:
        if (host.is_running(v)) host.yield(v);
        break;
      case 1:
        if (host.is_running(v) && host.is_ready(u)) host.yield_to(v, u);
        break;
      case 2:
        if (!host.is_running(v) && !host.is_ready(v)) break;
        host.throttle(v);
        host.run_for(up_to(300));
        host.release(v);
        break;
      default:
        break;
    }
  }
}

}  // namespace vcpusim::testing_support
