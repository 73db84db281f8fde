#include "mlir_bridge/gpu/workgroup.hpp"

#include <algorithm>
#include <string>

#include "ir/error.hpp"
#include "mlir_bridge/gpu/intrinsics.hpp"
#include "mlir_bridge/targets/dependent_launch_text.hpp"

namespace kiln::gpu {

workgroup::workgroup(kernel_emitter& e, const std::string& name, std::array<std::int64_t, 3> grid, std::int64_t threads,
                     bool prepare)
    : e_(e), code_(e.code), threads_(threads) {
  begin(name, grid[0], {grid[1], grid[2]}, prepare);
}

workgroup::workgroup(kernel_emitter& e, const std::string& name, const dim& groups, std::int64_t threads, bool prepare)
    : e_(e), code_(e.code), threads_(threads) {
  begin(name, groups, {1, 1}, prepare);
}

void workgroup::begin(const std::string& name, const dim& all_groups, std::array<std::int64_t, 2> grid_yz,
                      bool prepare) {
  const dim groups = prepare ? all_groups : all_groups * e_.used;
  const gpu_row& row = e_.target.gpu;
  if (threads_ < 1 || threads_ > row.max_threads || threads_ % row.wave)
    throw error(error_kind::unsupported,
                "target '" + e_.target.name + "' has no workgroups of " + std::to_string(threads_) + " threads");
  e_.begin_stage(name, 1, prepare);
  launch& next = e_.current();
  next.grid_y = grid_yz[0], next.grid_z = grid_yz[1];
  if (groups.is_static()) next.grid = groups.value();
  else next.open_grid = groups;
  const std::array<bool, 3> single{all_groups == 1, grid_yz[0] == 1, grid_yz[1] == 1};
  next.block = threads_;
  const intrinsic_names& names = intrinsics(e_.target.family);
  mlir::Type i32 = code_.builder.getI32Type();
  thread_ = code_.to_index(call_intrinsic(code_, names.thread, i32));
  for (std::size_t axis = 0; axis < 3; ++axis)
    block_[axis] = single[axis] ? code_.constant(0) : code_.to_index(call_intrinsic(code_, names.workgroup[axis], i32));
  lane_ = code_.rem(thread_, row.wave);
  wave_ = threads_ == row.wave ? code_.constant(0) : code_.div(thread_, row.wave);
  if (threads_ != row.wave) wave_ = uniform(wave_);
  // The final size is set when the stage is closed. On NVIDIA the memory is allocated dynamically at launch, so that
  // more than the static limit can be used.
  mlir::OpBuilder::InsertionGuard guard(code_.builder);
  code_.builder.setInsertionPointToStart(e_.generated().getBody());
  auto bytes = mlir::LLVM::LLVMArrayType::get(code_.builder.getI8Type(), 0);
  shared_ = code_.make<mlir::LLVM::GlobalOp>(bytes, /*isConstant=*/false, mlir::LLVM::Linkage::External,
                                             next.symbol + "_lds", mlir::Attribute(), /*alignment=*/1024, lds_space);
}

void workgroup::control_launch(std::string_view text) {
  if (!e_.target.gpu.dependent_launch) return;
  auto dialect = mlir::LLVM::AsmDialectAttr::get(code_.builder.getContext(), mlir::LLVM::AsmDialect::AD_ATT);
  code_.make<mlir::LLVM::InlineAsmOp>(mlir::Type(), mlir::ValueRange(), llvm::StringRef(text.data(), text.size()),
                                      "~{memory}", /*has_side_effects=*/true, /*is_align_stack=*/false,
                                      mlir::LLVM::tailcallkind::TailCallKind::None, dialect, mlir::ArrayAttr());
}

void workgroup::admit_successors() { control_launch(admit_dependents); }

void workgroup::await_predecessors() { control_launch(wait_for_predecessors); }

void workgroup::close() {
  if (most_ > e_.target.gpu.lds_bytes)
    throw error(error_kind::unsupported, "kernel '" + e_.symbol + "' needs " + std::to_string(most_) +
                                             " bytes of shared memory, target '" + e_.target.name + "' has " +
                                             std::to_string(e_.target.gpu.lds_bytes));
  if (e_.target.family == target_family::amdgpu && most_ > 0) {
    // The declaration has the full size, so that the compiler can compute how many workgroups share a compute unit.
    shared_.setGlobalType(mlir::LLVM::LLVMArrayType::get(code_.builder.getI8Type(), static_cast<unsigned>(most_)));
    shared_.setLinkage(mlir::LLVM::Linkage::Internal);
    mlir::OpBuilder::InsertionGuard guard(code_.builder);
    code_.builder.createBlock(&shared_.getInitializerRegion());
    code_.make<mlir::LLVM::ReturnOp>(code_.make<mlir::LLVM::UndefOp>(shared_.getGlobalType()).getResult());
  } else {
    e_.current().lds_bytes = most_;
  }
  if (most_ == 0) shared_.erase();
  e_.end_stage();
}

Value workgroup::lds(std::int64_t bytes, std::int64_t alignment) {
  used_ = (used_ + alignment - 1) / alignment * alignment;
  std::int64_t at = used_;
  used_ += bytes;
  most_ = std::max(most_, used_);
  return lds_at(at);
}

Value workgroup::lds_at(std::int64_t offset) {
  Value base = code_.make<mlir::LLVM::AddressOfOp>(shared_);
  if (offset == 0) return base;
  return code_.make<mlir::LLVM::GEPOp>(base.getType(), code_.builder.getI8Type(), base,
                                       llvm::ArrayRef<mlir::LLVM::GEPArg>{static_cast<std::int32_t>(offset)},
                                       mlir::LLVM::GEPNoWrapFlags::inbounds);
}

void workgroup::barrier() {
  if (e_.target.family == target_family::nvidia) {
    call_intrinsic(code_, "llvm.nvvm.barrier.cta.sync.aligned.all", {},
                   {code_.make<mlir::arith::ConstantOp>(code_.builder.getI32IntegerAttr(0)).getResult()});
    return;
  }
  // The fences are restricted to shared memory (LLVM's AMDGPU memory model, "MMRA"), so they do not wait for global
  // loads.
  mlir::MLIRContext* context = code_.builder.getContext();
  auto local = mlir::LLVM::MMRATagAttr::get(context, "amdgpu-synchronize-as", "local");
  auto fence = [&](mlir::LLVM::AtomicOrdering order) {
    auto op = code_.make<mlir::LLVM::FenceOp>(order, "workgroup");
    op->setDiscardableAttr(mlir::LLVM::LLVMDialect::getMmraAttrName(), local);
  };
  fence(mlir::LLVM::AtomicOrdering::release);
  call_intrinsic(code_, "llvm.amdgcn.s.barrier", {});
  fence(mlir::LLVM::AtomicOrdering::acquire);
}

Value workgroup::exchange(Value bits, std::int64_t mask) {
  mlir::Type i32 = code_.builder.getI32Type(), i1 = code_.builder.getI1Type();
  auto number = [&](std::int64_t n) { return code_.integer(i32, n); };
  if (e_.target.family == target_family::nvidia)
    return call_intrinsic(code_, "llvm.nvvm.shfl.sync.bfly.i32", i32, {number(-1), bits, number(mask), number(31)});
  // AMD: shuffles within a row of 16 lanes are part of an instruction (DPP). For shuffles across rows, gfx10 and later
  // have a permutation instruction. Neither uses LDS.
  constexpr std::int64_t quad_permutations[] = {0, 0xb1, 0x4e, 0x1b};  // lane ^ 1, ^ 2, ^ 3 of four
  constexpr std::int64_t half_mirror = 0x141, mirror = 0x140, row_xor = 0x160;
  // gfx10 and later.
  bool has_row_xor = wave_size() == 32;
  std::int64_t control = mask < 4                   ? quad_permutations[mask]
                         : mask == 7                ? half_mirror
                         : mask == 15               ? mirror
                         : mask < 16 && has_row_xor ? row_xor + mask
                                                    : 0;
  if (control)
    return call_intrinsic(code_, "llvm.amdgcn.update.dpp", i32,
                          {bits, bits, number(control), number(15), number(15), code_.integer(i1, 1)});
  if (mask == 16 && has_row_xor)
    return call_intrinsic(
        code_, "llvm.amdgcn.permlanex16", i32,
        {bits, bits, number(0x76543210), number(0xfedcba98), code_.integer(i1, 1), code_.integer(i1, 0)});
  if (mask < 32) return call_intrinsic(code_, "llvm.amdgcn.ds.swizzle", i32, {bits, number(mask << 10 | 31)});
  Value lane = code_.on.index_bits == 32 ? lane_ : code_.make<mlir::arith::TruncIOp>(i32, lane_).getResult();
  Value address = code_.mul(code_.make<mlir::arith::XOrIOp>(lane, number(mask)).getResult(), 4);
  return call_intrinsic(code_, "llvm.amdgcn.ds.bpermute", i32, {address, bits});
}

Value workgroup::uniform(Value index) {
  if (e_.target.family != target_family::amdgpu) return index;
  mlir::Type i32 = code_.builder.getI32Type();
  const Value narrow = code_.on.index_bits == 32 ? index : code_.make<mlir::arith::TruncIOp>(i32, index).getResult();
  return code_.to_index(call_intrinsic(code_, "llvm.amdgcn.readfirstlane", i32, {narrow}));
}

Value workgroup::shuffle_xor(Value v, std::int64_t mask) {
  mlir::Type i32 = code_.builder.getI32Type(), type = v.getType();
  unsigned width = type.getIntOrFloatBitWidth();
  mlir::Type integer = code_.builder.getIntegerType(width);
  Value bits = type == integer ? v : code_.make<mlir::arith::BitcastOp>(integer, v).getResult();
  if (width < 32) {
    bits = code_.make<mlir::arith::TruncIOp>(integer, exchange(code_.make<mlir::arith::ExtUIOp>(i32, bits), mask));
  } else if (width == 32) {
    bits = exchange(bits, mask);
  } else {
    Value low = exchange(code_.make<mlir::arith::TruncIOp>(i32, bits), mask);
    Value high = exchange(code_.make<mlir::arith::TruncIOp>(
                              i32, code_.make<mlir::arith::ShRUIOp>(bits, code_.integer(integer, 32)).getResult()),
                          mask);
    Value shifted = code_.make<mlir::arith::ShLIOp>(code_.make<mlir::arith::ExtUIOp>(integer, high).getResult(),
                                                    code_.integer(integer, 32));
    bits = code_.make<mlir::arith::OrIOp>(code_.make<mlir::arith::ExtUIOp>(integer, low).getResult(), shifted);
  }
  return type == integer ? bits : code_.make<mlir::arith::BitcastOp>(type, bits).getResult();
}

values workgroup::reduce_wave(values v, const tuple_combiner& combine, std::int64_t width) {
  if (!width) width = wave_size();
  for (std::int64_t reach = 1; reach < width; reach *= 2) {
    // All lanes in a group of `reach` already hold the same value. So on gfx9 the other half of a row can be read
    // mirrored, without LDS.
    bool mirrored = e_.target.family == target_family::amdgpu && (reach == 4 || reach == 8) && width > reach;
    std::int64_t mask = mirrored ? 2 * reach - 1 : reach;
    values other;
    for (Value x : v) other.push_back(shuffle_xor(x, mask));
    v = combine(v, other);
  }
  return v;
}

Value workgroup::reduce_wave(Value v, const combiner& combine, std::int64_t width) {
  return reduce_wave(
      {v}, [&](std::span<const Value> a, std::span<const Value> b) { return values{combine(a[0], b[0])}; }, width)[0];
}

values workgroup::reduce(values v, const tuple_combiner& combine) {
  v = reduce_wave(std::move(v), combine);
  if (waves() == 1) return v;
  std::int64_t before = used_;
  values slots;
  for (Value x : v) slots.push_back(lds(waves() * lds_bytes_of(x)));
  code_.when(code_.equal(lane_, code_.constant(0)), [&] {
    for (std::size_t i = 0; i < v.size(); ++i) store_raw(slots[i], wave_, v[i]);
  });
  barrier();
  values all;
  for (std::int64_t w = 0; w < waves(); ++w) {
    values other;
    for (std::size_t i = 0; i < v.size(); ++i) other.push_back(load_raw(slots[i], code_.constant(w), v[i].getType()));
    all = w == 0 ? other : combine(all, other);
  }
  barrier();
  release_lds(before);
  return all;
}

Value workgroup::reduce(Value v, const combiner& combine) {
  return reduce({v},
                [&](std::span<const Value> a, std::span<const Value> b) { return values{combine(a[0], b[0])}; })[0];
}

std::int64_t workgroup::lds_bytes_of(Value v) {
  unsigned bits = code_builder::scalar_of(v).getIntOrFloatBitWidth();
  return code_builder::lanes_of(v) * std::max(1u, bits / 8);
}

Value workgroup::lds_slot(Value region, Value index, mlir::Type type) {
  return code_.make<mlir::LLVM::GEPOp>(region.getType(), type, region,
                                       llvm::ArrayRef<mlir::LLVM::GEPArg>{mlir::LLVM::GEPArg(index)},
                                       mlir::LLVM::GEPNoWrapFlags::inbounds);
}

namespace {

// Booleans are stored as bytes.
mlir::Type memory_type(code_builder& code, mlir::Type type) {
  auto scalar = mlir::getElementTypeOrSelf(type);
  if (!scalar.isInteger(1)) return type;
  auto vector = mlir::dyn_cast<mlir::VectorType>(type);
  return code_builder::with_lanes(code.builder.getIntegerType(8), vector ? vector.getNumElements() : 1);
}

unsigned natural_alignment(mlir::Type type) {
  auto vector = mlir::dyn_cast<mlir::VectorType>(type);
  unsigned bytes = mlir::getElementTypeOrSelf(type).getIntOrFloatBitWidth() / 8 *
                   (vector ? static_cast<unsigned>(vector.getNumElements()) : 1);
  return std::min(16u, bytes);
}

}  // namespace

void workgroup::store_raw(Value region, Value index, Value v) {
  mlir::Type type = memory_type(code_, v.getType());
  Value stored = type == v.getType() ? v : code_.make<mlir::arith::ExtUIOp>(type, v).getResult();
  code_.make<mlir::LLVM::StoreOp>(stored, lds_slot(region, index, type), natural_alignment(type));
}

Value workgroup::load_raw(Value region, Value index, mlir::Type type) {
  mlir::Type stored = memory_type(code_, type);
  Value v = code_.make<mlir::LLVM::LoadOp>(stored, lds_slot(region, index, stored), natural_alignment(stored));
  return stored == type ? v : code_.make<mlir::arith::TruncIOp>(type, v).getResult();
}

}  // namespace kiln::gpu
