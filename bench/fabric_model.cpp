#include "bench/fabric_model.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace tupelo::bench {
namespace {

// Levels of a tree over `hosts`.
double depth(int hosts) { return std::ceil(std::log2(hosts)); }

Way ring_way(double passes, const Group& group) {
  const double ranks = group.ranks();
  Way way;
  // A pass visits all links of the ring but one, at worst one inside a host.
  const double between = group.hosts == 1 ? 0 : group.per_host == 1 ? ranks - 1 : group.hosts;
  way.between_hops = passes * between;
  way.inside_hops = passes * (ranks - 1 - between);
  const double share = passes * (ranks - 1) / ranks;
  way.inside_share = group.per_host > 1 ? share : 0;
  // As many rings as ranks on a host, each leaving it over another rank's link.
  way.between_share = group.hosts > 1 ? share / group.per_host : 0;
  return way;
}

Way tree_way(const Group& group) {
  const double here = group.per_host, hosts = group.hosts;
  Way way;
  way.inside_hops = 2 * (here - 1);
  way.between_hops = 2 * depth(group.hosts);
  way.inside_share = 2 * (here - 1) / here;
  way.between_share = 2 * (hosts - 1) / hosts / here;
  return way;
}

double seconds_of(const Way& way, double inside_hop, double between_hop, double bytes,
                  const Fabric& fabric) {
  return fabric.launch_seconds + way.inside_hops * inside_hop + way.between_hops * between_hop +
         std::max(way.inside_share * bytes / fabric.inside.bytes_per_second,
                  way.between_share * bytes / fabric.between.bytes_per_second);
}

double ring_seconds(Collective collective, const Group& group, double bytes, const Fabric& fabric) {
  return seconds_of(way_of(collective, group, Algorithm::kRing), fabric.inside.ring_hop_seconds,
                    fabric.between.ring_hop_seconds, bytes, fabric);
}

double tree_seconds(const Group& group, double bytes, const Fabric& fabric) {
  return seconds_of(tree_way(group), fabric.inside.tree_hop_seconds,
                    fabric.between.tree_hop_seconds, bytes, fabric);
}

void check_measurements(const std::vector<Measurement>& measurements) {
  bool several_sizes = false;
  for (const Measurement& each : measurements) {
    several_sizes = several_sizes || each.bytes != measurements.front().bytes;
    if (!(each.seconds > 0)) {
      throw std::invalid_argument("a collective was measured to take " +
                                  std::to_string(each.seconds) + " s; valid is more than 0");
    }
  }
  if (!several_sizes) {
    throw std::invalid_argument(
        "alpha and beta need measurements of two sizes or more; tupelo doctor measures them where "
        "it is started with two ranks or more");
  }
}

double worst_error(const std::vector<Measurement>& measurements, const AlphaBeta& fit) {
  double worst = 0;
  for (const Measurement& each : measurements) {
    const double predicted = fit.alpha_seconds + fit.beta_seconds_per_byte * each.bytes;
    worst = std::max(worst, std::abs(predicted / each.seconds - 1));
  }
  return worst;
}

// H100 SXM hosts of eight, a 400 Gb/s network card for each GPU.
Fabric nvlink_400g() {
  Fabric fabric;
  fabric.name = "nvlink-400g";
  fabric.ranks_per_host = 8;
  // Latencies of NCCL's own model, protocol LL128, from ring {launch, NVLink hop, network hop} and
  // tree {NVLink hop, network hop}: https://github.com/NVIDIA/nccl/blob/
  // 01afd20a77b5804e0ecf1042509dd9d20ebf9e93/src/graph/tuning.cc
  fabric.launch_seconds = 10.0e-6;
  fabric.inside.ring_hop_seconds = 1.9e-6;
  fabric.between.ring_hop_seconds = 4.0e-6;
  fabric.inside.tree_hop_seconds = 1.2e-6;
  fabric.between.tree_hop_seconds = 8.5e-6;
  // One way of NVLink 4, measured: https://github.com/NVIDIA/nccl/issues/1264
  fabric.inside.bytes_per_second = 376e9;
  // What a card attains, 46 to 48: https://github.com/NVIDIA/nccl-tests/issues/290
  fabric.between.bytes_per_second = 47e9;
  return fabric;
}

}  // namespace

Group world_group(int ranks, const Fabric& fabric) {
  if (ranks < 1) {
    throw std::invalid_argument("a run has one rank or more, not " + std::to_string(ranks));
  }
  const int here = fabric.ranks_per_host;
  if (ranks <= here) return {1, ranks};
  if (ranks % here != 0) {
    throw std::invalid_argument(std::to_string(ranks) + " ranks do not fill hosts of " +
                                std::to_string(here) + "; valid are up to " + std::to_string(here) +
                                ", or a multiple of it");
  }
  return {ranks / here, here};
}

Group host_group(int ranks, const Fabric& fabric) {
  return {1, world_group(ranks, fabric).per_host};
}

Group replica_group(int ranks, const Fabric& fabric) {
  return {world_group(ranks, fabric).hosts, 1};
}

Way way_of(Collective collective, const Group& group, Algorithm algorithm) {
  if (group.ranks() == 1) return {};
  if (collective != Collective::kAllReduce) return ring_way(1, group);
  return algorithm == Algorithm::kTree ? tree_way(group) : ring_way(2, group);
}

double collective_seconds(Collective collective, const Group& group, double bytes,
                          const Fabric& fabric, Algorithm algorithm) {
  if (group.ranks() == 1) return 0;
  const double ring = ring_seconds(collective, group, bytes, fabric);
  if (collective != Collective::kAllReduce || algorithm == Algorithm::kRing) return ring;
  const double tree = tree_seconds(group, bytes, fabric);
  return algorithm == Algorithm::kTree ? tree : std::min(ring, tree);
}

AlphaBeta fit_alpha_beta(const std::vector<Measurement>& measurements) {
  check_measurements(measurements);
  // The sum of (alpha u + beta v - 1)^2 over measurements, with u = 1 / seconds and v = bytes /
  // seconds.
  double uu = 0, uv = 0, vv = 0, u = 0, v = 0;
  for (const Measurement& each : measurements) {
    const double a = 1 / each.seconds, b = each.bytes / each.seconds;
    uu += a * a, uv += a * b, vv += b * b, u += a, v += b;
  }
  const double determinant = uu * vv - uv * uv;
  AlphaBeta fit{(u * vv - v * uv) / determinant, (v * uu - u * uv) / determinant, 0};
  // On the edge that the best answer lies beyond.
  if (fit.alpha_seconds < 0) fit = {0, v / vv, 0};
  if (fit.beta_seconds_per_byte < 0) fit = {u / uu, 0, 0};
  fit.worst_relative_error = worst_error(measurements, fit);
  return fit;
}

Fabric calibrated(Fabric fabric, const Group& group, const AlphaBeta& all_reduce) {
  const Way way = way_of(Collective::kAllReduce, group, Algorithm::kRing);
  if (group.ranks() == 1) {
    throw std::invalid_argument("one rank says nothing about links; measure two or more");
  }
  const bool one_host = group.hosts == 1;
  double latency = all_reduce.alpha_seconds;
  if (one_host) {
    fabric.launch_seconds = 0;
  } else {
    latency -= fabric.launch_seconds + way.inside_hops * fabric.inside.ring_hop_seconds;
  }
  const double hops = one_host ? way.inside_hops : way.between_hops;
  const double share = one_host ? way.inside_share : way.between_share;
  Links& links = one_host ? fabric.inside : fabric.between;
  links.ring_hop_seconds = std::max(0.0, latency / hops);
  links.tree_hop_seconds = links.ring_hop_seconds;
  links.bytes_per_second = share / all_reduce.beta_seconds_per_byte;
  fabric.ranks_per_host = group.per_host;
  return fabric;
}

Fabric named_fabric(const std::string& name) {
  if (name == "nvlink-400g") return nvlink_400g();
  throw std::invalid_argument("there is no fabric '" + name + "'; valid is nvlink-400g");
}

}  // namespace tupelo::bench
