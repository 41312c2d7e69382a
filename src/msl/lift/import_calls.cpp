// Intrinsics of LLVM and hooks of the shim.
#include "ir/barrier_memory.h"
#include "ir/index_cast.h"
#include "msl/lift/importer.h"

#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/IntrinsicInst.h>

namespace vortex::msl::lift {

namespace arith = mlir::arith;
namespace math = mlir::math;

mlir::Value Importer::bitIntrinsic(llvm::IntrinsicInst& call, mlir::Value a) {
  unsigned width = a.getType().getIntOrFloatBitWidth();
  auto swap = [&](mlir::Value x, unsigned by, uint64_t mask) -> mlir::Value {
    mlir::Value bits = integer(x.getType(), mask);
    mlir::Value up = b_.create<arith::ShLIOp>(loc_, b_.create<arith::AndIOp>(loc_, x, bits), integer(x.getType(), by));
    mlir::Value down =
        b_.create<arith::AndIOp>(loc_, b_.create<arith::ShRUIOp>(loc_, x, integer(x.getType(), by)), bits);
    return b_.create<arith::OrIOp>(loc_, up, down);
  };
  unsigned smallest = call.getIntrinsicID() == llvm::Intrinsic::bswap ? 8 : 1;
  static constexpr uint64_t kMasks[] = {0x5555555555555555, 0x3333333333333333, 0x0f0f0f0f0f0f0f0f,
                                        0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff};
  for (unsigned step = 0, by = 1; by < width; ++step, by *= 2)
    if (by >= smallest)
      a = swap(a, by, kMasks[step]);
  return a;
}

/// The classes of a number are ranges of its bits, of which neighbours are tested together.
mlir::Value Importer::classTest(llvm::IntrinsicInst& call, mlir::Value number) {
  const auto wanted = static_cast<unsigned>(llvm::cast<llvm::ConstantInt>(call.getArgOperand(1))->getZExtValue());
  const llvm::fltSemantics& kind = llvm::cast<mlir::FloatType>(number.getType()).getFloatSemantics();
  const unsigned width = number.getType().getIntOrFloatBitWidth();
  auto bits = [](llvm::APFloat value) { return value.bitcastToAPInt().getZExtValue(); };
  const uint64_t normal = bits(llvm::APFloat::getSmallestNormalized(kind)),
                 infinite = bits(llvm::APFloat::getInf(kind)), quiet = bits(llvm::APFloat::getQNaN(kind)),
                 sign = uint64_t{1} << (width - 1);
  const uint64_t first[] = {0, 1, normal, infinite, infinite + 1, quiet, sign};
  using C = llvm::FPClassTest;
  static constexpr C kClasses[2][6] = {
      {C::fcPosZero, C::fcPosSubnormal, C::fcPosNormal, C::fcPosInf, C::fcSNan, C::fcQNan},
      {C::fcNegZero, C::fcNegSubnormal, C::fcNegNormal, C::fcNegInf, C::fcSNan, C::fcQNan}};
  mlir::Type integers = b_.getIntegerType(width);
  mlir::Value x = b_.create<arith::BitcastOp>(loc_, integers, number), result = integer(b_.getI1Type(), 0);
  for (uint64_t negative : {0, 1})
    for (unsigned from = 0, to = 0; from < 6; from = to + 1) {
      for (to = from; to < 6 && (wanted & kClasses[negative][to]); ++to)
        ;
      if (to == from)
        continue;
      mlir::Value low = integer(integers, first[from] + negative * sign);
      mlir::Value in = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::ult, b_.create<arith::SubIOp>(loc_, x, low),
                                                integer(integers, first[to] - first[from]));
      result = b_.create<arith::OrIOp>(loc_, result, in);
    }
  return result;
}

/// It overflowed if the result lies on the other side of `a` than the sign of `b` says.
mlir::Value Importer::signedSaturation(llvm::IntrinsicInst& call, mlir::Value a, mlir::Value b) {
  const bool isSum = call.getIntrinsicID() == llvm::Intrinsic::sadd_sat;
  const uint64_t sign = uint64_t{1} << (a.getType().getIntOrFloatBitWidth() - 1);
  mlir::Value wrapped =
      isSum ? b_.create<arith::AddIOp>(loc_, a, b).getResult() : b_.create<arith::SubIOp>(loc_, a, b).getResult();
  mlir::Value isLess = b_.create<arith::CmpIOp>(loc_, arith::CmpIPredicate::slt, wrapped, a);
  mlir::Value goesDown = b_.create<arith::CmpIOp>(loc_, isSum ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sgt,
                                                  b, integer(a.getType(), 0));
  mlir::Value bound =
      b_.create<arith::SelectOp>(loc_, goesDown, integer(a.getType(), sign), integer(a.getType(), sign - 1));
  return b_.create<arith::SelectOp>(loc_, b_.create<arith::XOrIOp>(loc_, isLess, goesDown), bound, wrapped);
}

mlir::Value Importer::intrinsic(llvm::IntrinsicInst& call) {
  using I = llvm::Intrinsic::IndependentIntrinsics;
  if (call.isAssumeLikeIntrinsic())
    return nullptr;
  auto operand = [&](unsigned i) { return value(call.getArgOperand(i)); };
  mlir::Value a = call.arg_empty() ? mlir::Value() : operand(0);
  auto choose = [&](arith::CmpIPredicate test, mlir::Value x, mlir::Value y, mlir::Value yes,
                    mlir::Value no) -> mlir::Value {
    return b_.create<arith::SelectOp>(loc_, b_.create<arith::CmpIOp>(loc_, test, x, y), yes, no);
  };
  switch (static_cast<I>(call.getIntrinsicID())) {
  case I::umin: return b_.create<arith::MinUIOp>(loc_, a, operand(1));
  case I::umax: return b_.create<arith::MaxUIOp>(loc_, a, operand(1));
  case I::smin: return b_.create<arith::MinSIOp>(loc_, a, operand(1));
  case I::smax: return b_.create<arith::MaxSIOp>(loc_, a, operand(1));
  case I::abs: return b_.create<arith::MaxSIOp>(loc_, a, b_.create<arith::SubIOp>(loc_, integer(a.getType(), 0), a));
  case I::fabs: return b_.create<math::AbsFOp>(loc_, a);
  case I::sqrt: return b_.create<math::SqrtOp>(loc_, a);
  case I::floor: return b_.create<math::FloorOp>(loc_, a);
  case I::ceil: return b_.create<math::CeilOp>(loc_, a);
  case I::trunc: return b_.create<math::TruncOp>(loc_, a);
  case I::round: return b_.create<math::RoundOp>(loc_, a);
  case I::rint:
  case I::nearbyint:
  case I::roundeven: return b_.create<math::RoundEvenOp>(loc_, a);
  case I::fmuladd:
    if (isContractionForbidden_)
      return b_.create<arith::AddFOp>(loc_, b_.create<arith::MulFOp>(loc_, a, operand(1)), operand(2));
    [[fallthrough]];
  case I::fma: return b_.create<math::FmaOp>(loc_, a, operand(1), operand(2));
  case I::copysign: return b_.create<math::CopySignOp>(loc_, a, operand(1));
  case I::minnum: return b_.create<arith::MinNumFOp>(loc_, a, operand(1));
  case I::maxnum: return b_.create<arith::MaxNumFOp>(loc_, a, operand(1));
  case I::ctpop: return b_.create<math::CtPopOp>(loc_, a);
  case I::ctlz: return b_.create<math::CountLeadingZerosOp>(loc_, a);
  case I::cttz: return b_.create<math::CountTrailingZerosOp>(loc_, a);
  case I::bswap:
  case I::bitreverse: return bitIntrinsic(call, a);
  case I::usub_sat:
    return choose(arith::CmpIPredicate::ugt, a, operand(1), b_.create<arith::SubIOp>(loc_, a, operand(1)),
                  integer(a.getType(), 0));
  case I::uadd_sat: {
    mlir::Value sum = b_.create<arith::AddIOp>(loc_, a, operand(1));
    return choose(arith::CmpIPredicate::ult, sum, a, integer(a.getType(), ~uint64_t{0}), sum);
  }
  case I::sadd_sat:
  case I::ssub_sat: return signedSaturation(call, a, operand(1));
  case I::scmp:
  case I::ucmp: {
    bool isSigned = call.getIntrinsicID() == llvm::Intrinsic::scmp;
    mlir::Type result = type(call.getType(), &call);
    mlir::Value above = choose(isSigned ? arith::CmpIPredicate::sgt : arith::CmpIPredicate::ugt, a, operand(1),
                               integer(result, 1), integer(result, 0));
    return choose(isSigned ? arith::CmpIPredicate::slt : arith::CmpIPredicate::ult, a, operand(1),
                  integer(result, ~uint64_t{0}), above);
  }
  case I::is_fpclass: return classTest(call, a);
  case I::fptosi_sat: return b_.create<ir::FloatToIntOp>(loc_, type(call.getType(), &call), a, false);
  case I::fptoui_sat: return b_.create<ir::FloatToIntOp>(loc_, type(call.getType(), &call), a, true);
  case I::fshl:
  case I::fshr: {
    // Shifts by the amount and by what it lacks of the width, the latter in two steps that are never the whole width.
    bool isLeft = call.getIntrinsicID() == llvm::Intrinsic::fshl;
    mlir::Value by = operand(2), low = operand(1), all = integer(by.getType(), ~uint64_t{0});
    mlir::Value rest = b_.create<arith::XOrIOp>(loc_, by, all), one = integer(by.getType(), 1);
    mlir::Value high =
        isLeft ? total(ir::IntKind::Shl, a, by) : total(ir::IntKind::Shl, total(ir::IntKind::Shl, a, one), rest);
    low =
        isLeft ? total(ir::IntKind::ShrU, total(ir::IntKind::ShrU, low, one), rest) : total(ir::IntKind::ShrU, low, by);
    return b_.create<arith::OrIOp>(loc_, high, low);
  }
  default: break;
  }
  refuse(&call, "`" + call.getCalledFunction()->getName().str() + "` cannot be lowered");
  return nullptr;
}

mlir::Value Importer::mathHook(llvm::CallInst& call, llvm::StringRef name) {
  if (call.arg_empty())
    return nullptr;
  mlir::Value a = value(call.getArgOperand(0));
  auto second = [&] { return value(call.getArgOperand(1)); };
  using Make = mlir::Value (*)(mlir::OpBuilder&, mlir::Location, mlir::Value);
#define MATH(text, Op)                                                                                                 \
  .Case(text, [](mlir::OpBuilder& b, mlir::Location loc, mlir::Value x) -> mlir::Value {                               \
    return b.create<math::Op>(loc, x);                                                                                 \
  })
  auto make = llvm::StringSwitch<Make>(name) MATH("exp", ExpOp) MATH("exp2", Exp2Op) MATH("log", LogOp)
                  MATH("log2", Log2Op) MATH("log10", Log10Op) MATH("sin", SinOp) MATH("cos", CosOp) MATH("tan", TanOp)
                      MATH("asin", AsinOp) MATH("acos", AcosOp) MATH("atan", AtanOp) MATH("sinh", SinhOp)
                          MATH("cosh", CoshOp) MATH("tanh", TanhOp) MATH("rsqrt", RsqrtOp)
                              .Default(nullptr);
#undef MATH
  if (make)
    return make(b_, loc_, a);
  if (name == "atan2")
    return b_.create<math::Atan2Op>(loc_, a, second());
  if (name == "pow")
    return b_.create<math::PowFOp>(loc_, a, second());
  if (name == "fmod")
    return b_.create<arith::RemFOp>(loc_, a, second());
  return nullptr;
}

mlir::Value Importer::warpHook(llvm::CallInst& call, llvm::StringRef name) {
  if (name == "lane")
    return input("thread_index_in_simdgroup", 0);
  if (name == "ballot")
    return b_.create<ir::WarpVoteOp>(loc_, b_.getI32Type(), ir::VoteKind::Ballot, value(call.getArgOperand(0)));
  if (name.consume_front("shuffle_"))
    if (auto kind = ir::symbolizeShuffleKind(name))
      return b_.create<ir::WarpShuffleOp>(loc_, *kind, value(call.getArgOperand(0)), value(call.getArgOperand(1)));
  if (name.consume_front("reduce_"))
    if (auto kind = ir::symbolizeCombine(name))
      return b_.create<ir::WarpReduceOp>(loc_, *kind, value(call.getArgOperand(0)));
  return nullptr;
}

mlir::Value Importer::memoryHook(llvm::CallInst& call, llvm::StringRef name) {
  unsigned count = call.arg_size();
  if (count < 3)
    return nullptr;
  auto* number = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(count - 3));
  if (!number)
    return nullptr;
  mlir::Value view = function_.getArgument(static_cast<unsigned>(number->getZExtValue()));
  mlir::Value offset = value(call.getArgOperand(count - 2)), mask;
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(count - 1)); !known || !known->isOne())
    mask = value(call.getArgOperand(count - 1));
  mlir::Value index = b_.create<arith::IndexCastOp>(loc_, b_.getIndexType(), offset);
  auto elem = llvm::cast<ir::ViewType>(view.getType()).getElementType();
  auto space = llvm::cast<ir::ViewType>(view.getType()).getSpace();
  auto scope = space == ir::Space::Global ? ir::Scope::Device : ir::Scope::Block;
  constexpr auto kOrder = ir::Order::Relaxed;
  if (name.starts_with("load."))
    return b_.create<ir::LoadOp>(loc_, elem, view, index, mask, true);
  if (name.starts_with("store."))
    return b_.create<ir::StoreOp>(loc_, value(call.getArgOperand(0)), view, index, mask, true), nullptr;
  if (name.starts_with("atomic_load."))
    return b_.create<ir::AtomicLoadOp>(loc_, elem, view, index, mask, kOrder, scope, true);
  if (name.starts_with("atomic_store."))
    return b_.create<ir::AtomicStoreOp>(loc_, value(call.getArgOperand(0)), view, index, mask, kOrder, scope, true),
           nullptr;
  if (name.starts_with("cas."))
    return b_.create<ir::AtomicCasOp>(loc_, value(call.getArgOperand(0)), value(call.getArgOperand(1)), view, index,
                                      mask, kOrder, scope, true);
  if (name.consume_front("atomic."))
    if (auto kind = ir::symbolizeCombine(name.split('.').first))
      return b_.create<ir::AtomicRmwOp>(loc_, *kind, value(call.getArgOperand(0)), view, index, mask, kOrder, scope,
                                        true);
  return nullptr;
}

/// Numbers of the order and the scope as in Metal's headers. What is weaker than a scope of ours gets the next one.
void Importer::fence(llvm::CallInst& call) {
  auto* order = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(0));
  auto* scope = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(1));
  if (!order || !scope)
    return refuse(&call, "order and scope of `atomic_thread_fence` must be known when the kernel is compiled");
  constexpr uint64_t kThread = 0, kThreadgroup = 1, kDevice = 2, kSimdgroup = 4;
  const uint64_t number = scope->getZExtValue();
  if (order->isZero() || number == kThread)
    return;
  static constexpr ir::Order kOrders[] = {ir::Order::SeqCst,  ir::Order::SeqCst, ir::Order::Acquire,
                                          ir::Order::Release, ir::Order::AcqRel, ir::Order::SeqCst};
  b_.create<ir::FenceOp>(loc_, kOrders[std::min<uint64_t>(order->getZExtValue(), std::size(kOrders) - 1)],
                         number == kThreadgroup || number == kSimdgroup ? ir::Scope::Block
                         : number == kDevice                            ? ir::Scope::Device
                                                                        : ir::Scope::System);
}

/// Flags as in Metal's headers; those that only the launch knows stand for all.
void Importer::barrier(llvm::CallInst& call) {
  constexpr uint64_t kDevice = 1, kThreadgroup = 2;
  auto made = b_.create<ir::BarrierOp>(loc_);
  auto* flags = llvm::dyn_cast<llvm::ConstantInt>(call.getArgOperand(0));
  const uint64_t ordered = flags ? flags->getZExtValue() & (kDevice | kThreadgroup) : kDevice | kThreadgroup;
  if (ordered != (kDevice | kThreadgroup))
    made->setAttr(ir::kOrderedMemoryAttr, b_.getStringAttr(ordered == kDevice        ? "global"
                                                           : ordered == kThreadgroup ? "shared"
                                                                                     : "none"));
}

mlir::Value Importer::hook(llvm::CallInst& call, llvm::StringRef name) {
  if (name == "threadgroup_barrier")
    return barrier(call), nullptr;
  if (name == "simdgroup_barrier")
    return b_.create<ir::WarpBarrierOp>(loc_), nullptr;
  if (name == "fence")
    return fence(call), nullptr;
  if (name.starts_with("input_"))
    return input(name.drop_front(6),
                 static_cast<unsigned>(llvm::cast<llvm::ConstantInt>(call.getArgOperand(0))->getZExtValue()));
  if (name.contains('.')) {
    mlir::Value result = memoryHook(call, name);
    if (!result && !call.getType()->isVoidTy())
      refuse(&call, "`" + name.str() + "` cannot be lowered");
    return result;
  }
  if (llvm::StringRef op = name; op.consume_front("total_"))
    return total(llvm::StringSwitch<ir::IntKind>(op.split('_').first)
                     .Case("udiv", ir::IntKind::DivU)
                     .Case("sdiv", ir::IntKind::DivS)
                     .Case("urem", ir::IntKind::RemU)
                     .Default(ir::IntKind::RemS),
                 value(call.getArgOperand(0)), value(call.getArgOperand(1)));
  mlir::Value result = warpHook(call, name);
  if (!result)
    result = mathHook(call, name);
  if (!result)
    refuse(&call, "`" + name.str() + "` cannot be lowered");
  return result;
}

/// An input of a kernel as an i32.
mlir::Value Importer::input(llvm::StringRef name, unsigned axis) {
  auto of = [&](ThreadValue first) {
    return threadValue(static_cast<ThreadValue>(static_cast<unsigned>(first) + axis));
  };
  auto narrow = [&](mlir::Value index) { return ir::fromIndex(b_, loc_, b_.getI32Type(), index); };
  auto count = [&](int64_t number) -> mlir::Value { return b_.create<arith::ConstantIndexOp>(loc_, number); };
  auto times = [&](mlir::Value a, mlir::Value b) -> mlir::Value { return b_.create<arith::MulIOp>(loc_, a, b); };
  auto threads = [&](ThreadValue first) {
    axis = 0;
    mlir::Value x = of(first);
    axis = 1;
    mlir::Value y = of(first);
    axis = 2;
    return times(times(x, y), of(first));
  };
  auto groups = [&](ThreadValue first, int64_t size) {
    mlir::Value padded = b_.create<arith::AddIOp>(loc_, threads(first), count(size - 1));
    return narrow(b_.create<arith::DivUIOp>(loc_, padded, count(size)));
  };
  auto lane = [&](int64_t size) {
    return narrow(b_.create<arith::RemUIOp>(loc_, threadValue(ThreadValue::Linear), count(size)));
  };
  auto part = [&](int64_t size) {
    return narrow(b_.create<arith::DivUIOp>(loc_, threadValue(ThreadValue::Linear), count(size)));
  };
  if (name == "thread_position_in_grid")
    return narrow(
        b_.create<arith::AddIOp>(loc_, times(of(ThreadValue::GroupX), of(ThreadValue::BlockX)), of(ThreadValue::X)));
  if (name == "thread_position_in_threadgroup")
    return narrow(of(ThreadValue::X));
  if (name == "thread_index_in_threadgroup")
    return narrow(threadValue(ThreadValue::Linear));
  if (name == "threadgroup_position_in_grid")
    return narrow(of(ThreadValue::GroupX));
  if (name == "threadgroups_per_grid")
    return narrow(of(ThreadValue::GroupsX));
  if (name == "threads_per_grid" || name == "grid_size")
    return narrow(of(ThreadValue::GridX));
  if (name == "threads_per_threadgroup")
    return narrow(of(ThreadValue::WidthX));
  if (name == "dispatch_threads_per_threadgroup")
    return narrow(of(ThreadValue::BlockX));
  if (name == "thread_index_in_simdgroup")
    return lane(32);
  if (name == "simdgroup_index_in_threadgroup")
    return part(32);
  if (name == "thread_index_in_quadgroup")
    return lane(4);
  if (name == "quadgroup_index_in_threadgroup")
    return part(4);
  if (name == "simdgroups_per_threadgroup")
    return groups(ThreadValue::WidthX, 32);
  if (name == "dispatch_simdgroups_per_threadgroup")
    return groups(ThreadValue::BlockX, 32);
  if (name == "quadgroups_per_threadgroup")
    return groups(ThreadValue::WidthX, 4);
  if (name == "dispatch_quadgroups_per_threadgroup")
    return groups(ThreadValue::BlockX, 4);
  return integer(b_.getI32Type(), name == "grid_origin" ? 0 : 32);  // threads_per_simdgroup
}

}  // namespace vortex::msl::lift
