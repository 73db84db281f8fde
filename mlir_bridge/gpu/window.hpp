// Windows over channels_last images, for pooling and depthwise convolution. A thread owns a vector of channels for a
// few neighbouring output pixels; neighbouring threads own neighbouring channels. A small window is unrolled, so that
// pixels share their loads. Internal to mlir_bridge/gpu.
#pragma once

#include <optional>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/codegen/tuning_space.hpp"
#include "mlir_bridge/gpu/workgroup.hpp"

namespace kiln::gpu {

class window_stage {
 public:
  struct geometry {
    std::vector<std::int64_t> window, strides, dilations, pads_begin;
  };
  // `lanes` is the number of channels in a vector and divides the channels of the result. "pixels" per thread (a power
  // of two, if the window is unrolled) and "threads" per workgroup of the configuration overrule the choice.
  // `whole_pixels`: all threads that own channels of a pixel are in one workgroup, so that they can combine them.
  window_stage(kernel_emitter& e, value image, value result, geometry shape, std::int64_t lanes,
               bool whole_pixels = false);
  window_stage(kernel_emitter& e, const kernel_configuration& configuration, value image, value result, geometry shape,
               std::int64_t lanes, bool whole_pixels = false);

  void open(const std::string& name);
  void close() { group_->close(); }
  // Emits the whole stage: computes the results of its pixels, and stores them. Not with whole pixels.
  void emit(const std::string& name, const std::function<values()>& results);
  std::int64_t lanes() const { return lanes_; }
  // Rough estimate in cycles.
  double cost() const;
  std::size_t pixels() const { return static_cast<std::size_t>(pixels_); }
  // Index of the vector's first channel in the result.
  Value channel() const { return channel_; }

  struct tap {
    std::size_t pixel;
    // Position in the image; the last axis is the result's channel.
    position where;
    // i1, null for always true. If false, `where` is an arbitrary position inside the image.
    Value inside;
    // Position in the window.
    values window;
  };
  // Visits every tap. `visit` must use the evaluator it gets for everything it reads.
  values walk(values state, const std::function<values(evaluator&, const tap&, values)>& visit) const;
  // Returns how many window positions of a pixel lie inside the image. With `end` (one entry per axis), positions up to
  // the image's end plus `end`, counted from the padded start, are included.
  Value count(std::size_t pixel, const std::vector<std::int64_t>* end) const;
  // Returns the position of this thread's channels of a pixel, inside the result.
  position place(std::size_t pixel) const;
  // Sums each value (a vector of channels) over the channels of its pixel. Every thread of a pixel gets the scalars.
  // Only with whole pixels.
  values total(values of_channels);
  // Evaluates the epilogue for each pixel and stores it. `results` are the anchor's results.
  void store(std::span<const Value> results) const;

 private:
  values axes(std::size_t axis, std::vector<Value> taps, values state,
              const std::function<values(const std::vector<Value>&, values)>& body) const;
  // Returns the image coordinate of a window position along an axis, and whether it is inside the image.
  std::pair<axis_index, Value> locate(std::size_t axis, Value tap, std::size_t pixel) const;
  // Image coordinate at which the window starts.
  Value start(std::size_t axis, std::size_t pixel) const;
  bool may_leave(std::size_t axis) const;

  kernel_emitter& e_;
  code_builder& code_;
  geometry shape_;
  std::vector<dim> in_, out_;  // with batch and channels
  // A pixel has `vectors_` vectors of channels. `team_` threads compute it: as many, or more with whole pixels.
  std::int64_t lanes_, pixels_ = 1, threads_ = 64, vectors_ = 1, team_ = 1;
  dim items_ = 0;
  bool written_out_ = true;
  // Nothing of a row of the unrolled window moves into another one.
  bool by_rows_ = false;
  std::optional<workgroup> group_;
  // fresh_: this thread's item exists; active_: so do its channels. Null for always true.
  Value fresh_, active_, batch_, channel_;
  // Spatial coordinates of the output. The last one is that of the first pixel.
  values output_;
};

// Returns the channels per vector: "lanes" of the configuration, or `most` (fewer where a workgroup has whole pixels),
// reduced to a power of two that divides `extent`.
std::int64_t window_lanes(const kernel_emitter& e, std::int64_t most, std::int64_t extent, bool whole_pixels = false);
// Returns the tuning space of a window stage with at most `most` lanes, which divide `extent`.
std::vector<candidate> window_space(kernel_emitter& e, value image, const window_stage::geometry& shape,
                                    std::int64_t most, std::int64_t extent, bool whole_pixels = false);

}  // namespace kiln::gpu
