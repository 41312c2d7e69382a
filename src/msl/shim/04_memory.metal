// Matrices, barriers and atomics.
namespace metal {

template <class T, int C, int R> struct matrix {
  vec<T, R> columns[C];
  matrix() = default;
  __VX explicit matrix(T diagonal) {
    __UNROLL for (int i = 0; i < C; ++i) {
      columns[i] = vec<T, R>(T(0));
      if (i < R)
        columns[i].v[i] = diagonal;
    }
  }
  template <class... Q, class = enable_if_t<sizeof...(Q) == C && (C > 1) && (true && ... && __isvec<Q>)>>
  __VX matrix(Q... q) : columns{q...} {}
  template <class... Q, class = enable_if_t<sizeof...(Q) == C * R && (true && ... && !__isvec<Q>)>, class = void>
  __VX matrix(Q... q) {
    T t[C * R] = {(T)q...};
    __UNROLL for (int i = 0; i < C; ++i) __UNROLL for (int j = 0; j < R; ++j) columns[i][j] = t[i * R + j];
  }
  template <class U, class = enable_if_t<!__is_same(U, T)>> __VX explicit matrix(matrix<U, C, R> o) {
    __UNROLL for (int i = 0; i < C; ++i) columns[i] = vec<T, R>(o.columns[i]);
  }
  __VX vec<T, R>& operator[](int i) { return columns[i]; }
  __VX const vec<T, R>& operator[](int i) const { return columns[i]; }
  __VX matrix& operator+=(matrix o) { return *this = matrix(*this) + o; }
  __VX matrix& operator-=(matrix o) { return *this = matrix(*this) - o; }
  template <class U> __VX matrix& operator*=(U o) { return *this = matrix(*this) * o; }
};
template <class T, int C, int R> __VX matrix<T, R, C> transpose(matrix<T, C, R> m) {
  matrix<T, R, C> r;
  __UNROLL for (int i = 0; i < R; ++i) __UNROLL for (int j = 0; j < C; ++j) r.columns[i].v[j] = m.columns[j].v[i];
  return r;
}
template <class T, int C, int R> __VX vec<T, R> operator*(matrix<T, C, R> m, vec<T, C> x) {
  vec<T, R> r = m.columns[0] * x[0];
  __UNROLL for (int i = 1; i < C; ++i) r += m.columns[i] * x[i];
  return r;
}
template <class T, int C, int R> __VX vec<T, C> operator*(vec<T, R> x, matrix<T, C, R> m) {
  vec<T, C> r;
  __UNROLL for (int i = 0; i < C; ++i) r.v[i] = dot(x, m.columns[i]);
  return r;
}
template <class T, int C, int R, int K> __VX matrix<T, C, R> operator*(matrix<T, K, R> a, matrix<T, C, K> b) {
  matrix<T, C, R> r;
  __UNROLL for (int i = 0; i < C; ++i) r.columns[i] = a * b.columns[i];
  return r;
}
#define __BY_COLUMNS(op)                                                                                               \
  template <class T, int C, int R> __VX matrix<T, C, R> operator op(matrix<T, C, R> a, matrix<T, C, R> b) {            \
    __UNROLL for (int i = 0; i < C; ++i) a.columns[i] = a.columns[i] op b.columns[i];                                  \
    return a;                                                                                                          \
  }
__BY_COLUMNS(+) __BY_COLUMNS(-)
template <class T, int C, int R> __VX matrix<T, C, R> operator-(matrix<T, C, R> a) {
  __UNROLL for (int i = 0; i < C; ++i) a.columns[i] = -a.columns[i];
  return a;
}
template <class T, int C, int R> __VX bool operator==(matrix<T, C, R> a, matrix<T, C, R> b) {
  bool same = true;
  __UNROLL for (int i = 0; i < C; ++i) same &= all(a.columns[i] == b.columns[i]);
  return same;
}
template <class T, int C, int R> __VX bool operator!=(matrix<T, C, R> a, matrix<T, C, R> b) { return !(a == b); }
template <class T, int C, int R> __VX matrix<T, C, R> operator*(matrix<T, C, R> a, __same_t<T> s) {
  __UNROLL for (int i = 0; i < C; ++i) a.columns[i] = a.columns[i] * s;
  return a;
}
template <class T, int C, int R> __VX matrix<T, C, R> operator*(__same_t<T> s, matrix<T, C, R> a) { return a * s; }
template <class T> __VX T determinant(matrix<T, 2, 2> m) { return m[0][0] * m[1][1] - m[1][0] * m[0][1]; }
template <class T> __VX T determinant(matrix<T, 3, 3> m) { return dot(m[0], cross(m[1], m[2])); }
/// By the minors of the first two columns and of the last two.
template <class T> __VX T determinant(matrix<T, 4, 4> m) {
  auto minor = [&](int c, int a, int b) -> T { return m[c][a] * m[c + 1][b] - m[c][b] * m[c + 1][a]; };
  return minor(0, 0, 1) * minor(2, 2, 3) - minor(0, 0, 2) * minor(2, 1, 3) + minor(0, 0, 3) * minor(2, 1, 2) +
         minor(0, 1, 2) * minor(2, 0, 3) - minor(0, 1, 3) * minor(2, 0, 2) + minor(0, 2, 3) * minor(2, 0, 1);
}
#define __MATRICES_OF(T)                                                                                               \
  using T##2x2 = matrix<T, 2, 2>;                                                                                      \
  using T##2x3 = matrix<T, 2, 3>;                                                                                      \
  using T##2x4 = matrix<T, 2, 4>;                                                                                      \
  using T##3x2 = matrix<T, 3, 2>;                                                                                      \
  using T##3x3 = matrix<T, 3, 3>;                                                                                      \
  using T##3x4 = matrix<T, 3, 4>;                                                                                      \
  using T##4x2 = matrix<T, 4, 2>;                                                                                      \
  using T##4x3 = matrix<T, 4, 3>;                                                                                      \
  using T##4x4 = matrix<T, 4, 4>;
__MATRICES_OF(float) __MATRICES_OF(half)

//===-- barriers --------------------------------------------------------------===//

extern "C" {
#define __TOGETHER __attribute__((convergent, nothrow))
__TOGETHER void __vx_threadgroup_barrier(int flags);
__TOGETHER void __vx_simdgroup_barrier();
__attribute__((nothrow)) void __vx_fence(int order, int scope);
}
enum class mem_flags : uint {
  mem_none = 0,
  mem_device = 1,
  mem_threadgroup = 2,
  mem_texture = 4,
  mem_threadgroup_imageblock = 8,
  mem_object_data = 16
};
__VX constexpr mem_flags operator|(mem_flags a, mem_flags b) { return (mem_flags)((uint)a | (uint)b); }
enum memory_order {
  memory_order_relaxed = 0,
  memory_order_acquire = 2,
  memory_order_release = 3,
  memory_order_acq_rel = 4,
  memory_order_seq_cst = 5
};
enum thread_scope {
  thread_scope_thread = 0,
  thread_scope_threadgroup = 1,
  thread_scope_device = 2,
  thread_scope_simdgroup = 4
};
__VX void threadgroup_barrier(mem_flags flags) { __vx_threadgroup_barrier((int)flags); }
__VX void threadgroup_barrier(mem_flags flags, thread_scope) { __vx_threadgroup_barrier((int)flags); }
__VX void threadgroup_barrier(mem_flags flags, memory_order, thread_scope = thread_scope_threadgroup) {
  __vx_threadgroup_barrier((int)flags);
}
__VX void simdgroup_barrier(mem_flags) { __vx_simdgroup_barrier(); }
__VX void atomic_thread_fence(mem_flags, memory_order order = memory_order_seq_cst,
                              thread_scope scope = thread_scope_device) {
  __vx_fence(order, scope);
}

//===-- atomics ---------------------------------------------------------------===//

template <class T> struct atomic {
  static_assert(is_integral_v<T> && (sizeof(T) >= 4 || is_same_v<T, bool>) || is_same_v<T, float>,
                "atomics are int, uint, bool, float, or have 64 bits");
  T __value;
};
template <class T> using _atomic = atomic<T>;
using atomic_int = atomic<int>;
using atomic_uint = atomic<uint>;
using atomic_bool = atomic<bool>;
using atomic_float = atomic<float>;
using atomic_ulong = atomic<ulong>;
#define __FETCH(A, name, ...)                                                                                          \
  template <class T, class = enable_if_t<(__VA_ARGS__) && !is_same_v<T, bool>>>                                        \
  __VX T atomic_fetch_##name##_explicit(volatile A atomic<T>* p, __same_t<T> v, memory_order) {                        \
    return __atomic_fetch_##name((T*)&p->__value, v, 0);                                                               \
  }
#define __ATOMIC_BOUND(A, name)                                                                                        \
  __VX void atomic_##name##_explicit(volatile A atomic<ulong>* p, ulong v, memory_order) {                             \
    __atomic_fetch_##name((ulong*)&p->__value, v, 0);                                                                  \
  }
__ATOMIC_BOUND(device, min) __ATOMIC_BOUND(device, max)
#define __ATOMICS(A)                                                                                                   \
  template <class T>                                                                                                   \
  __VX T atomic_load_explicit(const volatile A atomic<T>* p, memory_order) {                                           \
    T r;                                                                                                               \
    __atomic_load((T*)&p->__value, &r, 0);                                                                             \
    return r;                                                                                                          \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  __VX void atomic_store_explicit(volatile A atomic<T>* p, __same_t<T> v, memory_order) {                              \
    __atomic_store((T*)&p->__value, &v, 0);                                                                            \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  __VX T atomic_exchange_explicit(volatile A atomic<T>* p, __same_t<T> v, memory_order) {                              \
    T r;                                                                                                               \
    __atomic_exchange((T*)&p->__value, &v, &r, 0);                                                                     \
    return r;                                                                                                          \
  }                                                                                                                    \
  template <class T>                                                                                                   \
  __VX bool atomic_compare_exchange_weak_explicit(volatile A atomic<T>* p, thread T* expected, __same_t<T> v,          \
                                                  memory_order, memory_order) {                                        \
    return __atomic_compare_exchange((T*)&p->__value, expected, &v, true, 0, 0);                                       \
  }                                                                                                                    \
  __FETCH(A, add, is_arithmetic_v<T>) __FETCH(A, sub, is_arithmetic_v<T>) __FETCH(A, and, is_integral_v<T>)            \
  __FETCH(A, or, is_integral_v<T>) __FETCH(A, xor, is_integral_v<T>) __FETCH(A, min, is_integral_v<T>)                 \
  __FETCH(A, max, is_integral_v<T>)
__ATOMICS(device)
__ATOMICS(__LOCAL)

}  // namespace metal
