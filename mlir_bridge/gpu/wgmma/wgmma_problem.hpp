// Matrix products whose operands have a layout that the tensor copy engine can read: A is [batch, m, k] or [batch, k,
// m], B is [batch, n, k] or [batch, k, n], with rows of a multiple of 16 bytes. f32 operands are split into parts of
// bf16 (gpu/split_f32.hpp): A before the product, and B, too, unless it is in memory, from where the kernel divides it.
// Internal to mlir_bridge/gpu; plain data.
#pragma once

#include <functional>
#include <optional>

#include "mlir_bridge/codegen/evaluator.hpp"
#include "mlir_bridge/gpu/contraction/joined_product.hpp"
#include "mlir_bridge/gpu/wgmma/wgmma_tile.hpp"

namespace kiln::gpu {

using namespace codegen;

struct wgmma_operand {
  buffer memory;
  // Rows are m for A and n for B.
  std::int64_t rows = 0, k = 0;
  bool k_inner = true;
  // Elements from one row in memory to the next.
  std::int64_t pitch = 0;
  // Elements from one matrix to the next; 0 if the same matrix serves all batches.
  std::int64_t batch_pitch = 0;
  // The operand is first copied to whole rows with k innermost: an 8-bit constant, or 16-bit or f32 weights of which
  // kernels of other sizes read such a copy.
  bool rearrange = false;
  // Number of bf16 matrices that an f32 operand is split into; they lie one after the other.
  std::int64_t parts = 1;
  // Or the kernel reads f32 and divides it itself (wgmma_tile::divided); only B.
  bool divided = false;
  // Instead, a row has those of all parts side by side, each padded with zeros: for an open number of rows, which only
  // the outermost dimension of a tensor map may be. Then k and pitch are those of whole rows.
  bool parts_in_rows = false;
  value source = {};
};

// A is an image [images, height, width, channels], and the product is its convolution with stride 1. A tile computes a
// box of results. For each position of the window, the copy engine reads the box of pixels that these results multiply
// there; pixels outside the image are read as zeros.
struct wgmma_image {
  std::int64_t images, height, width, channels;
  std::int64_t out_height, out_width;
  std::int64_t window_height, window_width, dilation_y, dilation_x, pad_y, pad_x;
  // Results of a tile: at most as many as it has rows.
  std::int64_t box_height = 0, box_width = 0;

  std::int64_t taps() const { return window_height * window_width; }
  std::int64_t tiles_y() const { return (out_height + box_height - 1) / box_height; }
  std::int64_t tiles_x() const { return (out_width + box_width - 1) / box_width; }
  std::int64_t tiles() const { return images * tiles_y() * tiles_x(); }
  // The number of images, if it is open; then `images` is a sample.
  std::optional<dim> open_images = {};
};

// If the number of rows is open, the numbers of rows here (m, a.rows, images) are samples for which a tile is chosen,
// and the code takes the real ones from the table of sizes.
struct wgmma_problem {
  std::int64_t batch = 1, m = 0, n = 0, k = 0;
  wgmma_operand a, b;
  // What is computed together with the product (joined_product.hpp): the weights of a second one and the value that it
  // is, and the normalization of A's rows. Tiles then have columns of both products, half of them each.
  std::optional<wgmma_operand> second_b = {};
  value second = {};
  std::optional<double> epsilon = {};
  std::int64_t products() const { return second_b ? 2 : 1; }
  bool is_joined() const { return second_b || epsilon; }
  // Returns the position in the result without its last axis, which is n.
  std::function<position(Value batch, Value row)> locate;
  // With an image, m counts the rows of all tiles. `result_row` maps such a row (an i32) to a row of the result: the
  // first value is always a valid row; the second tells whether the tile's row has a result at all.
  std::optional<wgmma_image> image = {};
  std::function<std::pair<Value, Value>(Value row)> result_row = {};
  // The number of rows, if it is open: m, or with an image the rows of all tiles.
  std::optional<dim> open_m = {};
  dim used = 1;  // or 0 at the sizes at which another version computes the product (contraction/versions.hpp)
};

// Returns the properties that the choice of a tile depends on.
wgmma_size size_of(const kernel_emitter& e, const wgmma_problem& problem);

// Returns the image with the box for tiles of `rows` rows that needs the fewest tiles.
wgmma_image with_box(const wgmma_image& image, std::int64_t rows);
// Divides the image into tiles of `rows` rows and changes the problem accordingly.
void divide_image(kernel_emitter& e, wgmma_problem& problem, std::int64_t rows);

// Returns the descriptor of boxes of 128 bytes of the inner dimension by `box_rows` of the next one.
tensor_map make_tensor_map(const wgmma_operand& from, std::int64_t batch, std::int64_t box_rows);

// Whether it is a float of 8 bits that the matrix unit of sm_90 multiplies.
bool is_float8(element_type type);

// Returns the fusion's anchor as such a product; nullopt if an operand is computed or has another layout. 8-bit
// operands must have k innermost. For an open kernel, `sample` has values of the open dimensions; only the number of
// rows may be open.
std::optional<wgmma_problem> find_dot_problem(kernel_emitter& e, const joined_product* joined = nullptr,
                                              const dim_bindings& sample = {});
tensor_map make_image_map(const wgmma_problem& problem);
// For convolutions with channels last: 1x1, or any window with stride 1 over two axes.
std::optional<wgmma_problem> find_convolution_problem(kernel_emitter& e, const dim_bindings& sample = {});
// Returns the operand as it is read from a copy of it [1, rows, depth], whose rows may be padded.
wgmma_operand in_rows(const wgmma_operand& of, const buffer& copy);
// Emits the stages that rearrange operands, and makes the problem read their results. Those that every run needs are
// empty where `used` is 0.
void rearrange_operands(kernel_emitter& e, wgmma_problem& problem);

}  // namespace kiln::gpu
