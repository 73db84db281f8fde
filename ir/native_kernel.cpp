#include "ir/native_kernel.hpp"

#include <flatbuffers/flatbuffers.h>

#include <algorithm>
#include <cstring>

#include "ir/aligned_list.hpp"
#include "ir/error.hpp"
#include "ir/native_kernel_generated.h"

namespace kiln {
namespace {

namespace schema = native_kernel_schema;

// Far above the size of any real kernel. It bounds how much memory a hostile file can make us allocate.
constexpr std::size_t max_object_bytes = std::size_t{1} << 30;
constexpr std::size_t max_launches = 4096, max_scratch = 4096, max_arguments = 4096, max_symbol = 4096;
constexpr std::uint32_t max_buffer_index = 1 << 16;
constexpr std::size_t max_sizes = 4096, max_size_text = 1 << 16;
constexpr std::int64_t most_of_map = std::int64_t{1} << 32, most_of_box = 256;

void require(bool condition, const char* what) {
  if (!condition)
    throw error(error_kind::corrupted, std::string("damaged native kernel: ") + what + "; finalize the model again");
}

void require_writable(bool condition, const char* what) {
  if (!condition) throw error(error_kind::internal, std::string("a native kernel cannot be written: ") + what);
}

template <class Require>
void check(const tensor_map& map, const launch& l, Require&& require) {
  auto one_of = [](std::int32_t value, std::initializer_list<std::int32_t> allowed) {
    return std::ranges::find(allowed, value) != allowed.end();
  };
  require(map.argument < l.arguments.size(), "a tensor map names an argument that the launch does not have");
  require(static_cast<std::size_t>(map.type) < element_type_count && storage_bits(map.type) >= 8,
          "a tensor map has an impossible element type");
  require(!map.dims.empty() && map.dims.size() <= 5 && map.box.size() == map.dims.size() &&
              map.strides.size() + 1 == map.dims.size(),
          "a tensor map's dims, strides and box do not match");
  require(!map.open_rows || map.box.size() > 1, "a tensor map has no rows of which the number is open");
  for (std::size_t d = 0; d < map.dims.size(); ++d) {
    const bool open = map.open_outer && d + 1 == map.dims.size();
    require(open ? map.dims[d] == 0 : map.dims[d] >= 1 && map.dims[d] <= most_of_map,
            "a tensor map has an impossible dimension");
  }
  for (std::int64_t size : map.box) require(size >= 1 && size <= most_of_box, "a tensor map has an impossible box");
  for (std::int64_t stride : map.strides)
    require(stride >= 16 && stride % 16 == 0 && stride < std::int64_t{1} << 40,
            "a tensor map has an impossible stride");
  require(one_of(map.swizzle_bytes, {0, 32, 64, 128}) && one_of(map.l2_promotion_bytes, {0, 64, 128, 256}),
          "a tensor map has an impossible swizzle or promotion");
}

// Invariants of every kernel. They are checked both on writing and on reading, so that a broken finalizer is detected
// where it runs and not on another machine.
template <class Require>
void check(const native_kernel& kernel, Require&& require) {
  require(kernel.object.size() <= max_object_bytes, "its object is larger than 1 GiB");
  require(kernel.launches.size() <= max_launches && kernel.scratch.size() <= max_scratch,
          "too many launches or scratch buffers");
  require(kernel.registers >= 0 && kernel.spills >= 0, "negative register counts");
  require(kernel.sizes.size() <= max_sizes, "its table of sizes is too large");
  require(kernel.bounded_sizes.size() <= max_sizes, "it bounds too many sizes");
  for (const scratch_buffer& s : kernel.scratch) {
    require(!s.open_bytes || !(s.prepared || s.zeroed), "scratch of an open size is prepared or zeroed");
    require(s.bytes >= 0, "a scratch buffer has a negative size");
    require(!(s.prepared && s.zeroed), "a scratch buffer is both prepared and zeroed");
  }
  for (const launch& l : kernel.launches) {
    require(!l.symbol.empty() && l.symbol.size() <= max_symbol, "a launch's symbol is empty or too long");
    require(l.symbol.find('\0') == std::string::npos, "a symbol holds a zero byte");
    require(l.grid >= 0 && l.grid_y >= 0 && l.grid_z >= 0, "a negative grid");
    require(!l.open_grid || !l.prepare, "a launch that prepares weights has an open grid");
    require(l.block >= 1 && l.lds_bytes >= 0, "an impossible block or LDS size");
    require(l.arguments.size() <= max_arguments, "too many arguments");
    require(!l.copies || (l.copies->input < max_buffer_index && l.copies->output < max_buffer_index),
            "a launch copies an input or output that does not exist");
    for (const launch_argument& a : l.arguments) {
      require(a.kind <= buffer_kind::sizes, "an unknown kind of argument");
      require(a.kind != buffer_kind::sizes || (a.index == 0 && !kernel.sizes.empty()),
              "an argument names a table of sizes that does not exist");
      require(a.index < max_buffer_index, "an argument's index is out of range");
      require(a.kind != buffer_kind::scratch || a.index < kernel.scratch.size(),
              "an argument names scratch that does not exist");
    }
    for (std::uint32_t early : l.early_arguments)
      require(early < l.arguments.size(), "a launch reads an argument early that does not exist");
    std::vector<bool> mapped(l.arguments.size());
    for (const tensor_map& map : l.tensor_maps) {
      check(map, l, require);
      require(!mapped[map.argument], "an argument has two tensor maps");
      mapped[map.argument] = true;
    }
    const launch_statistics& n = l.statistics;
    for (std::int64_t count : {n.registers, n.accumulation_registers, n.scalar_registers, n.spills, n.private_bytes,
                               n.static_lds_bytes, n.matrix_instructions})
      require(count >= 0, "a negative statistic");
  }
}

// Upper bound on sizes and grids. It exceeds any real one, and sums and products of a few such numbers do not overflow.
constexpr std::int64_t most = std::int64_t{1} << 46;

std::int64_t value_of(const dim& expression, const dim_bindings& values) {
  const dim known = expression.substitute(values);
  require(known.is_static(), "a size depends on a dimension that the model does not have");
  require(known.value() >= -most && known.value() <= most, "an impossible size");
  return known.value();
}

std::int64_t count_of(const dim& expression, const dim_bindings& values) {
  const std::int64_t count = value_of(expression, values);
  require(count >= 0, "a negative size");
  return count;
}

bool fits_box(const tensor_map& map) { return map.box[1] >= 1 && map.box[1] <= most_of_box; }

// Returns null if there is no expression.
flatbuffers::Offset<flatbuffers::String> text_of(flatbuffers::FlatBufferBuilder& builder,
                                                 const std::optional<dim>& expression) {
  return expression ? builder.CreateString(expression->str()) : flatbuffers::Offset<flatbuffers::String>();
}

using text_list = flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>>;

// Returns null for an empty list.
text_list texts_of(flatbuffers::FlatBufferBuilder& builder, const std::vector<dim>& sizes) {
  std::vector<std::string> texts;
  for (const dim& size : sizes) texts.push_back(size.str());
  return texts.empty() ? text_list() : builder.CreateVectorOfStrings(texts);
}

dim parsed(const flatbuffers::String& text) {
  require(text.size() <= max_size_text, "the text of a size is too long");
  return dim::parse(text.str());
}

std::optional<dim> parsed(const flatbuffers::String* text) {
  return text ? std::optional(parsed(*text)) : std::nullopt;
}

std::vector<std::int64_t> sizes(const flatbuffers::Vector<std::int64_t>* stored) {
  const std::size_t count = aligned_count(stored);
  require(count <= 5, "a tensor map has too many dimensions");
  return count > 0 ? std::vector<std::int64_t>(stored->begin(), stored->end()) : std::vector<std::int64_t>();
}

}  // namespace

std::vector<std::byte> serialize(const native_kernel& kernel) {
  check(kernel, require_writable);
  flatbuffers::FlatBufferBuilder builder(kernel.object.size() + 1024);
  std::vector<flatbuffers::Offset<schema::Launch>> launches;
  for (const launch& l : kernel.launches) {
    std::vector<schema::Argument> arguments;
    for (const launch_argument& a : l.arguments)
      arguments.emplace_back(static_cast<schema::BufferKind>(a.kind), a.index);
    auto symbol = builder.CreateString(l.symbol);
    auto list = builder.CreateVectorOfStructs(arguments);
    auto open_grid = text_of(builder, l.open_grid);
    // Null if there are no tensor maps.
    flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<schema::TensorMap>>> maps;
    if (!l.tensor_maps.empty()) {
      std::vector<flatbuffers::Offset<schema::TensorMap>> each;
      for (const tensor_map& m : l.tensor_maps) {
        const auto dims = builder.CreateVector(m.dims);
        const auto strides = builder.CreateVector(m.strides);
        const auto box = builder.CreateVector(m.box);
        const auto open_outer = text_of(builder, m.open_outer);
        const auto open_rows = text_of(builder, m.open_rows);
        each.push_back(schema::CreateTensorMap(builder, m.argument, static_cast<std::uint8_t>(m.type), dims, strides,
                                               box, m.swizzle_bytes, m.l2_promotion_bytes, open_outer, open_rows));
      }
      maps = builder.CreateVector(each);
    }
    // Null if there are none.
    flatbuffers::Offset<flatbuffers::Vector<std::uint32_t>> early;
    if (!l.early_arguments.empty()) early = builder.CreateVector(l.early_arguments);
    const schema::Copied copies = l.copies ? schema::Copied(l.copies->input, l.copies->output) : schema::Copied();
    const launch_statistics& n = l.statistics;
    schema::Statistics statistics(n.registers, n.accumulation_registers, n.scalar_registers, n.spills, n.private_bytes,
                                  n.static_lds_bytes, n.matrix_instructions);
    launches.push_back(schema::CreateLaunch(builder, symbol, l.grid, l.grid_y, l.grid_z, l.block, l.lds_bytes, list,
                                            l.prepare, maps, n == launch_statistics{} ? nullptr : &statistics, l.waits,
                                            open_grid, l.copies ? &copies : nullptr, early));
  }
  std::vector<flatbuffers::Offset<schema::Scratch>> scratch;
  for (const scratch_buffer& s : kernel.scratch)
    scratch.push_back(schema::CreateScratch(builder, s.bytes, s.prepared, s.zeroed, text_of(builder, s.open_bytes)));
  const text_list table = texts_of(builder, kernel.sizes), bounded = texts_of(builder, kernel.bounded_sizes);
  builder.ForceVectorAlignment(kernel.object.size(), 1, 16);
  auto object = builder.CreateVector(reinterpret_cast<const std::uint8_t*>(kernel.object.data()), kernel.object.size());
  auto scratch_list = builder.CreateVector(scratch);
  auto launch_list = builder.CreateVector(launches);
  schema::FinishNativeKernelBuffer(
      builder, schema::CreateNativeKernel(builder, object, scratch_list, launch_list, kernel.registers, kernel.spills,
                                          table, bounded));
  const auto* begin = reinterpret_cast<const std::byte*>(builder.GetBufferPointer());
  return {begin, begin + builder.GetSize()};
}

native_kernel deserialize_native_kernel(std::span<const std::byte> bytes) {
  require(bytes.size() >= 8 && bytes.size() < FLATBUFFERS_MAX_BUFFER_SIZE, "its size is out of range");
  // FlatBuffers reads numbers in place, so the buffer must be as aligned as when it was built.
  std::vector<std::byte> aligned;
  if (reinterpret_cast<std::uintptr_t>(bytes.data()) % 16 != 0) {
    aligned.assign(bytes.begin(), bytes.end());
    bytes = aligned;
  }
  const auto* data = reinterpret_cast<const std::uint8_t*>(bytes.data());
  require(schema::NativeKernelBufferHasIdentifier(data), "it has the wrong file identifier");
  flatbuffers::Verifier verifier(data, bytes.size(), 16, 16384);
  require(schema::VerifyNativeKernelBuffer(verifier), "its structure is broken");
  const schema::NativeKernel& stored = *schema::GetNativeKernel(data);

  native_kernel kernel;
  if (const auto* object = stored.object()) {
    const auto* begin = reinterpret_cast<const std::byte*>(object->data());
    kernel.object.assign(begin, begin + object->size());
  }
  kernel.registers = stored.registers();
  kernel.spills = stored.spills();
  if (stored.scratch())
    for (const schema::Scratch* s : *stored.scratch())
      kernel.scratch.push_back({s->bytes(), s->prepared(), s->zeroed(), parsed(s->open_bytes())});
  auto read_sizes = [](const auto* texts, std::vector<dim>& to) {
    if (!texts) return;
    require(texts->size() <= max_sizes, "its table of sizes is too large");
    for (const flatbuffers::String* text : *texts) to.push_back(parsed(*text));
  };
  read_sizes(stored.sizes(), kernel.sizes);
  read_sizes(stored.bounded_sizes(), kernel.bounded_sizes);
  if (stored.launches())
    for (const schema::Launch* l : *stored.launches()) {
      require(l->symbol()->size() <= max_symbol, "a launch's symbol is too long");
      require(!l->tensor_maps() || l->tensor_maps()->size() <= max_arguments, "too many tensor maps");
      require(!l->arguments() || l->arguments()->size() <= max_arguments, "too many arguments");
      launch& out = kernel.launches.emplace_back();
      out.symbol = l->symbol()->str();
      out.grid = l->grid();
      out.grid_y = l->grid_y();
      out.grid_z = l->grid_z();
      out.block = l->block();
      out.lds_bytes = l->lds_bytes();
      out.prepare = l->prepare();
      out.waits = l->waits();
      out.open_grid = parsed(l->open_grid());
      if (const schema::Copied* c = l->copies()) out.copies = {c->input(), c->output()};
      if (l->arguments())
        for (const schema::Argument* a : *l->arguments())
          out.arguments.push_back({static_cast<buffer_kind>(a->kind()), a->index()});
      require(!l->early_arguments() || l->early_arguments()->size() <= max_arguments, "too many early arguments");
      if (l->early_arguments()) out.early_arguments.assign(l->early_arguments()->begin(), l->early_arguments()->end());
      if (l->tensor_maps())
        for (const schema::TensorMap* m : *l->tensor_maps())
          out.tensor_maps.push_back({m->argument(), static_cast<element_type>(m->type()), sizes(m->dims()),
                                     sizes(m->strides()), sizes(m->box()), m->swizzle_bytes(), m->l2_promotion_bytes(),
                                     parsed(m->open_outer()), parsed(m->open_rows())});
      if (const schema::Statistics* n = l->statistics())
        out.statistics = {n->registers(),     n->accumulation_registers(), n->scalar_registers(),   n->spills(),
                          n->private_bytes(), n->static_lds_bytes(),       n->matrix_instructions()};
    }
  check(kernel, require);
  return kernel;
}

bool is_open(const native_kernel& kernel) {
  const auto depends = [](const launch& l) {
    return l.open_grid || std::ranges::any_of(l.tensor_maps, [](auto& m) { return m.open_outer || m.open_rows; });
  };
  return !kernel.sizes.empty() || std::ranges::any_of(kernel.launches, depends) ||
         std::ranges::any_of(kernel.scratch, [](auto& s) { return s.open_bytes.has_value(); });
}

std::vector<std::int64_t> at_sizes(native_kernel& kernel, const dim_bindings& values) {
  for (launch& l : kernel.launches) {
    if (l.open_grid) l.grid = count_of(*l.open_grid, values);
    for (tensor_map& map : l.tensor_maps) {
      if (map.open_outer) map.dims.back() = count_of(*map.open_outer, values);
      if (map.open_rows) map.box[1] = count_of(*map.open_rows, values);
      require(map.dims.back() >= 1 && map.dims.back() <= most_of_map && (!map.open_rows || fits_box(map)),
              "a tensor map has an impossible size");
    }
  }
  for (scratch_buffer& s : kernel.scratch)
    if (s.open_bytes) s.bytes = count_of(*s.open_bytes, values);
  std::vector<std::int64_t> table;
  for (const dim& size : kernel.sizes) table.push_back(value_of(size, values));
  return table;
}

bool serves(const native_kernel& kernel, const dim_bindings& values) {
  if (kernel.bounded_sizes.empty()) return true;
  auto bounded = [&](const dim& size) {
    const std::int64_t known = value_of(size, values);
    return known > -std::int64_t{1} << 31 && known < std::int64_t{1} << 31;
  };
  return std::ranges::all_of(kernel.bounded_sizes, bounded) && std::ranges::all_of(kernel.sizes, bounded) &&
         std::ranges::all_of(kernel.launches, [&](const launch& l) { return !l.open_grid || bounded(*l.open_grid); });
}

}  // namespace kiln
