#include "runtime/gpu/tensor_maps.hpp"

#include <algorithm>
#include <array>

namespace kiln::gpu {
namespace {

// CUtensorMapDataType. A copy does not interpret the elements, so types that are not in it are copied as integers of
// the same width.
struct type_row {
  element_type ours;
  int theirs;
};
constexpr type_row types[] = {
    {element_type::u8, 0},     {element_type::i8, 0},  {element_type::boolean, 0}, {element_type::f8e4m3, 0},
    {element_type::f8e5m2, 0}, {element_type::u16, 1}, {element_type::i16, 1},     {element_type::u32, 2},
    {element_type::i32, 3},    {element_type::u64, 4}, {element_type::i64, 5},     {element_type::f16, 6},
    {element_type::f32, 7},    {element_type::f64, 8}, {element_type::bf16, 9},
};

// The index of `value` in `values`, which is the driver's number for it.
template <std::size_t N>
int place(const std::array<std::int32_t, N>& values, std::int32_t value) {
  return static_cast<int>(std::ranges::find(values, value) - values.begin());
}
constexpr std::array<std::int32_t, 4> swizzles{0, 32, 64, 128}, promotions{0, 64, 128, 256};

}  // namespace

void encode_tensor_map(state& of, const tensor_map& map, void* base, encoded_tensor_map* to) {
  const driver_functions& f = of.functions();
  if (!f.tensor_map_encode)
    throw error(error_kind::unsupported, "device " + of.name() + ": its driver has no tensor maps: update the driver");
  auto* type = std::ranges::find(types, map.type, &type_row::ours);
  if (type == std::end(types))
    throw error(error_kind::unsupported, "device " + of.name() + ": a tensor map of " + std::string(name(map.type)));
  if (reinterpret_cast<std::uintptr_t>(base) % 16)
    throw error(error_kind::usage,
                "device " + of.name() + ": a tensor that is read through a tensor map is not aligned to 16 bytes");
  std::array<std::uint64_t, 5> dims{}, strides{};
  std::array<std::uint32_t, 5> box{}, steps{1, 1, 1, 1, 1};
  std::ranges::copy(map.dims, dims.begin());
  std::ranges::copy(map.strides, strides.begin());
  std::ranges::transform(map.box, box.begin(), [](std::int64_t size) { return static_cast<std::uint32_t>(size); });
  current_device now(of);
  of.require(f.tensor_map_encode(to, type->theirs, static_cast<std::uint32_t>(map.dims.size()), base, dims.data(),
                                 strides.data(), box.data(), steps.data(), 0, place(swizzles, map.swizzle_bytes),
                                 place(promotions, map.l2_promotion_bytes), 0),
             "encoding a tensor map");
}

}  // namespace kiln::gpu
