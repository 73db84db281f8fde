// Addressing for convolutions of images of open sizes: the positions of consecutive pixels, and the addresses from
// which a tap reads. Channels last.
#pragma once

#include "mlir_bridge/codegen/channel_view.hpp"
#include "mlir_bridge/codegen/evaluator.hpp"

namespace kiln::cpu {

using namespace codegen;

// Returns the indices of `count` consecutive pixels of an image of these sizes (without batch and channels). The first
// is number `first` and lies at `indices`. Pixels beyond the last one repeat the last one.
std::vector<values> pixel_positions(kernel_emitter& e, Value first, const values& indices, std::int64_t count,
                                    std::span<const dim> sizes);

// Keeps the positions of a tile's pixels in memory, for loops over them. Create it in the open stage in front of the
// loops, because it allocates stack memory.
class position_list {
 public:
  position_list(kernel_emitter& e, std::int64_t count, std::size_t axes);
  void set(std::span<const values> positions) const;
  values at(Value pixel) const;

 private:
  kernel_emitter& e_;
  std::size_t axes_;
  Value memory_;
};

// Reads pixels around those of a tile. A pixel outside of the image has zeros.
class pixel_reader {
 public:
  // `channels` are read at once. `may_miss` tells whether a pixel can be outside.
  pixel_reader(kernel_emitter& e, const channel_view& image, std::vector<dim> sizes, std::int64_t channels,
               bool may_miss);

  // A place in the image, whose indices may be outside of it, and its offset in memory.
  struct origin {
    values place;
    Value offset;
  };
  origin from(Value batch, values place, Value first_channel) const;

  // A distance from a place.
  struct step {
    values distance;
    Value offset;
  };
  step by(values distance) const;

  // Returns the address of the first of the channels at this distance, or of zeros.
  Value address(const origin& from, const step& by) const;

 private:
  kernel_emitter& e_;
  channel_view image_;
  std::vector<dim> sizes_;
  std::int64_t channels_;
  bool may_miss_;
};

}  // namespace kiln::cpu
