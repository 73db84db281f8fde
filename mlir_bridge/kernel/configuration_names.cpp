#include "mlir_bridge/kernel/configuration_names.hpp"

#include <array>

namespace kiln {

std::span<const std::string_view> configuration_names() {
  static constexpr std::array<std::string_view, 55> names{
      "abreast",     "at_once",        "block",         "bounded",        "chunk",    "chunks",        "cluster_m",
      "cluster_n",   "columns",        "consumers",     "each",           "grain",    "group",         "instruction",
      "items",       "join",           "key_parts",     "keys",           "lanes",    "lines",         "matrix",
      "narrow",      "narrow_columns", "narrow_stages", "narrow_waves",   "pack",     "panels_inside", "part_m",
      "part_n",      "patches",        "pixels",        "prefetch",       "producer", "rocm",          "shared_panels",
      "split_first", "splits",         "stages",        "stored_queries", "sums_kb",  "team",          "threads",
      "tile",        "tile_k",         "tile_m",        "tile_n",         "together", "transposed",    "turned",
      "turns",       "unroll",         "vectors",       "waves",          "wgmma",    "winograd"};
  return names;
}

}  // namespace kiln
