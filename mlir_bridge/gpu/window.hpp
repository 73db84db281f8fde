// Windows over channels_last images, for pooling and depthwise convolution: a thread owns a vector of channels of a few
// neighbouring output pixels; neighbouring threads own neighbouring channels. Window positions are written out where
// there are few of them, so that pixels share what they load. Internal to mlir_bridge/gpu.
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
  // lanes: channels of one vector; they divide the channels of the result. The configuration's "pixels" of a thread (a
  // power of two, where the window is written out) and "threads" of a workgroup overrule the choice.
  window_stage(kernel_emitter& e, value image, value result, geometry shape, std::int64_t lanes);
  window_stage(kernel_emitter& e, const kernel_configuration& configuration, value image, value result, geometry shape,
               std::int64_t lanes);

  void open(const std::string& name);
  void close() { group_->close(); }
  std::int64_t lanes() const { return lanes_; }
  double cost() const;  // in cycles, roughly
  std::size_t pixels() const { return static_cast<std::size_t>(pixels_); }
  Value channel() const { return channel_; }  // the first of the vector, in the result

  struct tap {
    std::size_t pixel;
    position where;  // in the image, with the result's channels in last place
    Value inside;    // i1; null for always. Outside, `where` is some place inside.
    values window;   // the position in the window
  };
  // visit gets an evaluator for everything it reads.
  values walk(values state, const std::function<values(evaluator&, const tap&, values)>& visit) const;
  // Window positions of a pixel that lie inside of the image, or before its end plus `end` (one entry for each axis)
  // counted from the padded start.
  Value count(std::size_t pixel, const std::vector<std::int64_t>* end) const;
  // The epilogue at each pixel; results of the anchor.
  void store(std::span<const Value> results) const;

 private:
  values axes(std::size_t axis, std::vector<Value> taps, values state,
              const std::function<values(const std::vector<Value>&, values)>& body) const;
  // Along an axis: the image's coordinate of a window position, and whether it is inside.
  std::pair<axis_index, Value> locate(std::size_t axis, Value tap, std::size_t pixel) const;
  Value start(std::size_t axis, std::size_t pixel) const;  // of the window, in image coordinates
  bool may_leave(std::size_t axis) const;

  kernel_emitter& e_;
  code_builder& code_;
  geometry shape_;
  std::vector<dim> in_, out_;  // with batch and channels
  std::int64_t lanes_, pixels_ = 1, threads_ = 64;
  dim items_ = 0;
  bool written_out_ = true;
  std::optional<workgroup> group_;
  Value fresh_, batch_, channel_;
  values output_;  // spatial coordinates; the last one of the first pixel
};

// Channels of a vector: the configuration's "lanes" or `most`, a power of two that divides `extent`.
std::int64_t window_lanes(const kernel_emitter& e, std::int64_t most, std::int64_t extent);
// What a tuner may vary of a window stage, `most` lanes at most that divide `extent`.
std::vector<candidate> window_space(kernel_emitter& e, value image, const window_stage::geometry& shape,
                                    std::int64_t most, std::int64_t extent);

}  // namespace kiln::gpu
