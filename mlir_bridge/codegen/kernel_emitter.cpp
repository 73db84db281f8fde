#include "mlir_bridge/codegen/kernel_emitter.hpp"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>
#include <span>
#include <utility>

#include "ir/error.hpp"
#include "ir/ops/all.hpp"
#include "ir/ops/cache_update.hpp"
#include "mlir_bridge/codegen/int4.hpp"
#include "mlir_bridge/codegen/open_sizes.hpp"
#include "mlir_bridge/targets/function_attributes.hpp"

namespace kiln::codegen {

namespace {

dim product(std::span<const dim> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), dim(1), std::multiplies<>());
}

// Converts an index to a scalar of the width of `other`, because data that indexes a tensor may be wider than indices.
Value as_wide_as(code_builder& code, Value index, Value other) {
  const mlir::Type type = code_builder::scalar_of(other);
  if (index.getType() == type) return index;
  return type.getIntOrFloatBitWidth() > index.getType().getIntOrFloatBitWidth()
             ? code.make<mlir::arith::ExtSIOp>(type, index).getResult()
             : code.make<mlir::arith::TruncIOp>(type, index).getResult();
}

std::vector<dim> as_sizes(const std::vector<std::int64_t>& dims) { return {dims.begin(), dims.end()}; }

// Returns how many of the inner anchors one generator computes together: the first ones, if they are updates of caches
// in the same form.
std::size_t emitted_together(std::span<const inner_anchor> anchors) {
  std::size_t count = 1;
  while (anchors[0].at->op().is<cache_update>() && count < anchors.size() &&
         anchors[count].at->op() == anchors[0].at->op())
    ++count;
  return count;
}

}  // namespace

std::vector<dim> buffer::strides() const {
  std::vector<dim> result(sizes.size(), 1);
  for (std::size_t i = sizes.size(); i-- > 1;) result[i - 1] = result[i] * sizes[i];
  return result;
}

kernel_emitter::kernel_emitter(const module& fusion, const instruction* anchor, std::string symbol,
                               const target_row& target, const kernel_configuration& configuration,
                               const codegen_target& on, mlir::ModuleOp target_module)
    : fusion(fusion),
      symbol(std::move(symbol)),
      target(target),
      configuration(configuration),
      code(target_module.getContext(), on),
      target_module_(target_module),
      anchor_(anchor) {
  std::uint32_t next = 0;
  for (value parameter : fusion.parameters()) parameter_index_[parameter.producer] = next++;
  for (std::size_t i = 0; i < fusion.outputs().size(); ++i)
    if (const shape& s = fusion.outputs()[i].type(); is_packed(s.type))
      packed_outputs_.emplace(i, add_open_scratch(element_type::u8, s.dims));
}

std::int64_t kernel_emitter::factor(const dim& size) const {
  std::int64_t result = known_factor(size);
  dim times;
  for (const auto& [multiple, of] : multiples)
    if (!size.is_static() && divides_exactly(size, multiple, times))
      result = std::lcm(result, of * known_factor(times));
  return result;
}

std::int64_t kernel_emitter::lanes_for(element_type type, std::int64_t extent) const {
  std::int64_t bits = std::max(8, storage_bits(compute_type(type)));
  std::int64_t native = std::max<std::int64_t>(1, target.vector_bits / std::max<std::int64_t>(bits, 32));
  if (extent < 1) return 1;
  return std::min<std::int64_t>(native, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(extent))));
}

// --- inner anchors

// Returns the values that are computed from an inner anchor, without the help of a later one, and that the rest of the
// kernel reads.
std::vector<value> kernel_emitter::results_of(const instruction& inner) const {
  std::set<const instruction*> inside{&inner}, beyond{anchor_};
  for (const inner_anchor& other : inner_)
    if (other.at != &inner) beyond.insert(other.at);
  std::vector<value> results;
  const auto add = [&](value v) {
    if (inside.contains(v.producer) && std::ranges::find(results, v) == results.end()) results.push_back(v);
  };
  for (const instruction& i : fusion.instructions()) {
    const auto reads = [&](const std::set<const instruction*>& those) {
      return std::ranges::any_of(i.inputs(), [&](value v) { return those.contains(v.producer) && !in_memory(v); });
    };
    if (reads(beyond)) beyond.insert(&i);
    if (&i == &inner || !reads(inside)) continue;
    if (keeps_indices(i.op()) && !beyond.contains(&i) && i.outputs()[0].dims == inner.outputs()[0].dims)
      inside.insert(&i);
    else std::ranges::for_each(i.inputs(), add);
  }
  std::ranges::for_each(fusion.outputs(), add);
  return results;
}

void kernel_emitter::emit_inner_anchors() {
  while (!inner_.empty()) {
    const auto count = static_cast<std::ptrdiff_t>(emitted_together(inner_));
    const inner_anchor inner = inner_[static_cast<std::size_t>(count - 1)];
    inner_outputs_.clear();
    for (std::ptrdiff_t i = 0; i < count; ++i)
      for (value v : results_of(*inner_[static_cast<std::size_t>(i)].at))
        if (std::ranges::find(inner_outputs_, v) == inner_outputs_.end()) inner_outputs_.push_back(v);
    inner_buffers_.clear();
    for (value v : inner_outputs_) {
      const auto place = std::ranges::find(fusion.outputs(), v) - fusion.outputs().begin();
      inner_buffers_.push_back(place < std::ssize(fusion.outputs()) ? output(static_cast<std::size_t>(place))
                                                                    : add_open_scratch(v.type().type, sizes(v)));
    }
    const std::vector<inner_anchor> later(inner_.begin() + count, inner_.end());
    const instruction* own = std::exchange(anchor_, inner.at);
    inner_.resize(static_cast<std::size_t>(count - 1));
    emitted_ = true;
    inner.emit(*this);
    emitted_ = false;
    inner_ = later;
    anchor_ = own;
    for (std::size_t i = 0; i < inner_outputs_.size(); ++i) hold(inner_outputs_[i], inner_buffers_[i]);
  }
}

// --- sizes

Value kernel_emitter::size(const dim& d) {
  if (d.is_static()) return code.constant(d.value());
  Value& read = read_sizes_[d.str()];
  if (read) return read;
  const auto place = std::ranges::find(open_sizes_, d) - open_sizes_.begin();
  if (place == std::ssize(open_sizes_)) open_sizes_.push_back(d);
  const Value table = pointer({buffer_kind::sizes, 0, element_type::i64, {}});
  // Insert at the entry of the function, where the size dominates every use.
  mlir::OpBuilder::InsertionGuard guard(code.builder);
  code.builder.setInsertionPointToStart(&function_.getBody().front());
  auto i64 = code.builder.getI64Type();
  const Value address = code.make<mlir::LLVM::GEPOp>(
      table.getType(), i64, table, llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<std::int32_t>(place)});
  return read = code.to_index(code.make<mlir::LLVM::LoadOp>(i64, address, 8u, /*isVolatile=*/false,
                                                            /*isNonTemporal=*/false, /*isInvariant=*/true));
}

Value kernel_emitter::add(Value a, const dim& b) {
  return b.is_static() ? code.add(a, b.value()) : code.add(a, as_wide_as(code, size(b), a));
}
Value kernel_emitter::sub(Value a, const dim& b) {
  return b.is_static() ? code.sub(a, b.value()) : code.sub(a, as_wide_as(code, size(b), a));
}
Value kernel_emitter::mul(Value a, const dim& b) {
  return b.is_static() ? code.mul(a, b.value()) : code.mul(a, as_wide_as(code, size(b), a));
}
Value kernel_emitter::div(Value a, const dim& b) {
  return b.is_static() ? code.div(a, b.value()) : code.div(a, as_wide_as(code, size(b), a));
}
Value kernel_emitter::rem(Value a, const dim& b) {
  return b.is_static() ? code.rem(a, b.value()) : code.rem(a, as_wide_as(code, size(b), a));
}
Value kernel_emitter::min(Value a, const dim& b) {
  return b.is_static() ? code.min(a, b.value()) : code.min(a, as_wide_as(code, size(b), a));
}

values kernel_emitter::delinearize(Value linear, std::span<const dim> sizes) {
  values digits(sizes.size());
  for (std::size_t i = sizes.size(); i-- > 0;) {
    // The linear index is in range, so the first digit needs no remainder.
    digits[i] = i == 0 ? linear : rem(linear, sizes[i]);
    if (i) linear = div(linear, sizes[i]);
  }
  return digits;
}

// --- memory

buffer kernel_emitter::input(std::size_t parameter) const {
  const shape& s = fusion.parameters()[parameter].type();
  return {buffer_kind::input, static_cast<std::uint32_t>(parameter), s.type, s.dims};
}

buffer kernel_emitter::output(std::size_t index) const {
  if (emitted_) return inner_buffers_[index];
  if (auto found = packed_outputs_.find(index); found != packed_outputs_.end()) return found->second;
  const shape& s = fusion.outputs()[index].type();
  return {buffer_kind::output, static_cast<std::uint32_t>(index), s.type, s.dims};
}

buffer kernel_emitter::add_scratch(element_type type, const std::vector<std::int64_t>& dims, bool prepared) {
  return add_open_scratch(type, as_sizes(dims), prepared);
}

buffer kernel_emitter::add_open_scratch(element_type type, std::vector<dim> sizes, bool prepared) {
  const dim count = product(sizes);
  scratch_buffer& made = scratch_.emplace_back();
  made.prepared = prepared;
  if (count.is_static())
    made.bytes = static_cast<std::int64_t>(storage_bytes(type, static_cast<std::size_t>(count.value())));
  else made.open_bytes = (count * dim(storage_bits(type)) + 7) / 8;
  return {buffer_kind::scratch, static_cast<std::uint32_t>(scratch_.size() - 1), type, std::move(sizes)};
}

buffer kernel_emitter::add_zeroed_scratch(element_type type, const std::vector<std::int64_t>& dims) {
  buffer b = add_scratch(type, dims);
  scratch_.back().zeroed = true;
  return b;
}

std::optional<buffer> kernel_emitter::in_memory(value v) const {
  if (auto found = materialized_.find(v); found != materialized_.end()) return found->second;
  if (auto found = parameter_index_.find(v.producer); found != parameter_index_.end())
    return buffer{buffer_kind::input, found->second, v.type().type, sizes(v)};
  if (v.producer->op().is<reshape>()) {
    auto source = in_memory(v.producer->inputs()[0]);
    if (source) source->sizes = sizes(v);
    return source;
  }
  return std::nullopt;
}

buffer kernel_emitter::materialize(value v) {
  if (auto found = in_memory(v)) return *found;
  if (in_stage()) throw error(error_kind::internal, "materialize inside a stage of kernel '" + symbol + "'");
  bool prepare = v.type().is_static() && only_parameters(v);
  buffer b = add_open_scratch(v.type().type, sizes(v), prepare);
  code.on.pointwise_into(*this, v, b, prepare);
  materialized_[v] = b;
  return b;
}

bool kernel_emitter::only_parameters(value v) const {
  if (parameter_index_.contains(v.producer)) return true;
  const operation& op = v.producer->op();
  bool moves = op.is<reshape>() || op.is<transpose>() || op.is<slice>() || op.is<broadcast>() || op.is<convert>() ||
               op.is<bit_cast>() || op.is<pad>() || op.is<concat>() || op.is<constant>();
  return moves && std::ranges::all_of(v.producer->inputs(), [&](value input) { return only_parameters(input); });
}

void kernel_emitter::pack_outputs() {
  for (const auto& [index, codes] : packed_outputs_) {
    const element_type type = fusion.outputs()[index].type().type;
    const buffer bytes{buffer_kind::output, static_cast<std::uint32_t>(index), element_type::u8, {}};
    const dim elements = product(codes.sizes), per_byte = 8 / storage_bits(type);
    parallel_open("pack_" + std::to_string(index), {(elements + per_byte - 1) / per_byte}, 2 * per_byte.value(),
                  [&](std::span<const Value> at) {
                    store_packed(code, pointer(codes), size(elements), type, pointer(bytes), at[0]);
                  });
  }
}

// --- stages

void kernel_emitter::begin_stage(const std::string& name, const dim& grid, bool prepare) {
  if (in_stage()) throw error(error_kind::internal, "stage '" + name + "' begins inside another one");
  code.known_.clear();
  code.constants_.clear();
  read_sizes_.clear();
  pointer_tables_.clear();
  launch next;
  next.symbol = symbol + "_" + std::to_string(launches_.size()) + "_" + name;
  if (grid.is_static()) next.grid = grid.value();
  else next.open_grid = grid;
  next.prepare = prepare;
  launches_.push_back(std::move(next));
  arguments_.clear();
  code.builder.setInsertionPointToEnd(target_module_.getBody());
  code.on.open_stage(*this);
}

void kernel_emitter::keep_loops() { function_->setAttr("passthrough", code.builder.getStrArrayAttr({written_loops})); }

bool kernel_emitter::try_out(const std::function<bool()>& body) {
  begin_stage("trial", 1);
  const bool result = body();
  function_.erase();
  function_ = {};
  launches_.pop_back();
  arguments_.clear();
  return result;
}

void kernel_emitter::set_function(mlir::func::FuncOp function) {
  function_ = function;
  first_pointer_ = function.getNumArguments();
}

Value kernel_emitter::pointer(const buffer& b) {
  const auto& maps = launches_.back().tensor_maps;
  for (std::size_t i = 0; i < arguments_.size(); ++i)
    if (arguments_[i].kind == b.kind && arguments_[i].index == b.index &&
        std::ranges::find(maps, i, &tensor_map::argument) == maps.end())
      return function_.getArgument(first_pointer_ + static_cast<unsigned>(i));
  return add_argument(
      b, b.kind == buffer_kind::sizes ? code.on.sizes_space : code.on.global_space,
      code.builder.getDictionaryAttr({code.builder.getNamedAttr("llvm.noalias", code.builder.getUnitAttr())}));
}

Value kernel_emitter::pointer_table(const std::vector<buffer>& buffers) {
  std::vector<std::pair<buffer_kind, std::uint32_t>> key;
  values pointers;
  for (const buffer& b : buffers) {
    key.emplace_back(b.kind, b.index);
    pointers.push_back(pointer(b));
  }
  Value& table = pointer_tables_[key];
  if (table) return table;
  mlir::OpBuilder::InsertionGuard guard(code.builder);
  Value count = code.constant(std::ssize(buffers));
  code.builder.setInsertionPointAfterValue(count);
  const mlir::Type element = pointers[0].getType();
  table = code.make<mlir::LLVM::AllocaOp>(
      mlir::LLVM::LLVMPointerType::get(code.builder.getContext(), code.on.stack_space), element, count);
  for (std::size_t i = 0; i < pointers.size(); ++i)
    code.make<mlir::LLVM::StoreOp>(
        pointers[i], code.make<mlir::LLVM::GEPOp>(table.getType(), element, table,
                                                  llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<std::int32_t>(i)}));
  return table;
}

Value kernel_emitter::tensor_map_address(const buffer& b, tensor_map map) {
  map.argument = static_cast<std::uint32_t>(arguments_.size());
  launches_.back().tensor_maps.push_back(std::move(map));
  return add_argument(b, 0, {});
}

Value kernel_emitter::add_argument(const buffer& b, unsigned address_space, mlir::DictionaryAttr attributes) {
  arguments_.push_back(b);
  auto type = mlir::LLVM::LLVMPointerType::get(code.builder.getContext(), address_space);
  if (mlir::failed(function_.insertArgument(function_.getNumArguments(), type, attributes, code.where)))
    throw error(error_kind::internal, "cannot add an argument to a stage");
  return function_.getArgument(function_.getNumArguments() - 1);
}

void kernel_emitter::end_stage() {
  code.make<mlir::func::ReturnOp>();
  for (const buffer& b : arguments_) launches_.back().arguments.push_back({b.kind, b.index});
  code.on.close_stage(*this);
  function_ = {};
}

void kernel_emitter::parallel(const std::string& name, const std::vector<std::int64_t>& dims, std::int64_t cost,
                              const std::function<void(std::span<const Value>)>& body, bool prepare) {
  parallel_open(name, as_sizes(dims), cost, body, prepare);
}

void kernel_emitter::parallel_open(const std::string& name, const std::vector<dim>& sizes, std::int64_t cost,
                                   const std::function<void(std::span<const Value>)>& body, bool prepare) {
  const dim total = product(sizes);
  if (total == 0) return;
  const std::int64_t most = total.is_static() ? total.value() : INT64_MAX;
  std::int64_t per_item = std::clamp<std::int64_t>(
      choose(configuration, "grain", code.on.item_operations) / std::max<std::int64_t>(cost, 1), 1, most);
  begin_stage(name, (total + per_item - 1) / per_item, prepare);
  Value first = code.mul(begin(), per_item);
  Value last = min(code.mul(end(), per_item), total);
  code.loop(first, last, 1, [&](Value linear) { body(delinearize(linear, sizes)); });
  end_stage();
}

Value kernel_emitter::table(element_type type, const std::vector<double>& numbers) {
  auto& global = tables_[{type, numbers}];
  if (!global) {
    mlir::Type scalar = code.storage_type(type);
    auto table_type = mlir::RankedTensorType::get({static_cast<std::int64_t>(numbers.size())}, scalar);
    llvm::SmallVector<mlir::Attribute> elements;
    for (double number : numbers)
      elements.push_back(mlir::isa<mlir::FloatType>(scalar)
                             ? mlir::Attribute(code.builder.getFloatAttr(scalar, number))
                             : mlir::Attribute(code.builder.getIntegerAttr(scalar, static_cast<std::int64_t>(number))));
    auto array = mlir::LLVM::LLVMArrayType::get(scalar, static_cast<unsigned>(numbers.size()));
    mlir::OpBuilder::InsertionGuard guard(code.builder);
    code.builder.setInsertionPointToStart(target_module_.getBody());
    global = code.make<mlir::LLVM::GlobalOp>(
        array, /*isConstant=*/true, mlir::LLVM::Linkage::Internal, symbol + "_table_" + std::to_string(tables_.size()),
        mlir::DenseElementsAttr::get(table_type, elements), /*alignment=*/64, code.on.table_space);
  }
  return code.make<mlir::LLVM::AddressOfOp>(global);
}

}  // namespace kiln::codegen
