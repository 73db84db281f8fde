#include "jit/rocm_candidate.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "jit/spirv_launches.hpp"
#include "spirv/object.hpp"
#include "spirv/offload_bundle.hpp"
#include "spirv/reader/fixed_parameters.hpp"

namespace kiln {
namespace {

// HIP_VERSION: major * 10^7 + minor * 10^5 + patch.
constexpr std::int64_t each_major = 10'000'000, each_minor = 100'000, first_version = 6 * each_major + 4 * each_minor;

spirv::fixed_kernel numbers_of(const spirv::launch_site& site) {
  spirv::fixed_kernel result{site.kernel, {}};
  for (const spirv::launch_value& v : site.values)
    result.parameters.push_back(v.buffer ? std::nullopt : std::optional(v.bits));
  return result;
}

}  // namespace

std::int64_t rocm_finalizer(std::string_view hip_version) {
  std::int64_t version = 0;
  for (std::int64_t unit : {each_major, each_minor, std::int64_t{1}}) {
    std::int64_t part = -1;
    auto [end, failed] = std::from_chars(hip_version.data(), hip_version.data() + hip_version.size(), part);
    if (failed != std::errc() || part < 0 || part >= each_minor) return 0;
    version += part * unit;
    hip_version.remove_prefix(static_cast<std::size_t>(end - hip_version.data()));
    if (hip_version.starts_with('.')) hip_version.remove_prefix(1);
  }
  return hip_version.empty() && version >= first_version ? version : 0;
}

std::optional<native_kernel> rocm_candidate(std::span<const std::byte> payload, std::span<const shape> inputs,
                                            std::span<const shape> outputs, const target_row& target) {
  if (target.family != target_family::amdgpu) return std::nullopt;
  spirv::object object = spirv::deserialize_object(payload);
  native_kernel result;
  std::vector<spirv::fixed_kernel> kernels;
  std::vector<spirv::launch_site> sites = make_launches(object, inputs, outputs, target, result);
  if (is_open(result)) return std::nullopt;
  for (std::size_t k = 0; k < sites.size(); ++k) {
    if (sites[k].block[1] != 1 || sites[k].block[2] != 1) return std::nullopt;
    result.launches[k].symbol = sites[k].kernel;
    spirv::fixed_kernel numbers = numbers_of(sites[k]);
    auto same = std::ranges::find(kernels, numbers.symbol, &spirv::fixed_kernel::symbol);
    if (same == kernels.end()) kernels.push_back(std::move(numbers));
    else if (*same != numbers) return std::nullopt;
  }
  result.object = spirv::make_offload_bundle(spirv::fix_parameters(object.words, kernels));
  return result;
}

}  // namespace kiln
