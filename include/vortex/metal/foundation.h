// The part of Apple's Foundation that Metal's interface needs, with the names and meanings of metal-cpp.
//
// Objects are counted: alloc(), new…, copy… and Copy… give a reference to the caller, who ends it with release(); what other functions return lives as
// long as the current AutoreleasePool, or the thread where there is none.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace vortex::metal {

/// What is behind the object of a class; only the implementation sees it.
template <class T> struct State;

namespace NS {

using UInteger = std::uintptr_t;
using Integer = std::intptr_t;
using TimeInterval = double;

class Object {
public:
  UInteger retainCount() const { return references_.load(); }

protected:
  Object() = default;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;
  virtual ~Object() = default;
  void addReference() { references_.fetch_add(1); }
  void dropReference();
  void leaveToPool();  ///< drops a reference later

private:
  friend class AutoreleasePool;
  friend class Array;
  std::atomic<UInteger> references_{1};
};

template <class T, class Base = Object> class Referencing : public Base {
public:
  T* retain() {
    this->addReference();
    return static_cast<T*>(this);
  }
  void release() { this->dropReference(); }
  T* autorelease() {
    this->leaveToPool();
    return static_cast<T*>(this);
  }
};

/// Objects that autorelease() was called on in this thread after the pool was made, and before it ends. Pools end in reverse order.
class AutoreleasePool : public Referencing<AutoreleasePool> {
public:
  static AutoreleasePool* alloc() { return new AutoreleasePool; }
  AutoreleasePool* init() { return this; }
  void drain() { release(); }

private:
  AutoreleasePool();
  ~AutoreleasePool() override;
  size_t first_;
};

/// Holds a reference.
template <class T> class SharedPtr {
public:
  SharedPtr() = default;
  SharedPtr(std::nullptr_t) {}
  SharedPtr(const SharedPtr& other) : object_(other.object_) {
    if (object_)
      object_->retain();
  }
  SharedPtr(SharedPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  SharedPtr& operator=(SharedPtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~SharedPtr() {
    if (object_)
      object_->release();
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() { *this = SharedPtr(); }

private:
  template <class U> friend SharedPtr<U> TransferPtr(U* object);
  T* object_ = nullptr;
};

/// Takes over the caller's reference.
template <class T> SharedPtr<T> TransferPtr(T* object) {
  SharedPtr<T> pointer;
  pointer.object_ = object;
  return pointer;
}
/// Adds a reference of its own.
template <class T> SharedPtr<T> RetainPtr(T* object) { return TransferPtr(object ? object->retain() : nullptr); }

struct Range {
  static Range Make(UInteger location, UInteger length) { return {location, length}; }
  UInteger location = 0, length = 0;
};

enum StringEncoding : UInteger { ASCIIStringEncoding = 1, UTF8StringEncoding = 4 };

class String : public Referencing<String> {
public:
  /// Without a text an empty one.
  static String* string(const char* text, StringEncoding encoding);
  static String* alloc() { return new String; }
  String* init(const char* text, StringEncoding encoding);
  const char* utf8String() const { return text_.c_str(); }
  const char* cString(StringEncoding) const { return text_.c_str(); }
  UInteger length() const { return text_.size(); }
  bool isEqualToString(const String* other) const { return other && other->text_ == text_; }

private:
  String() = default;
  std::string text_;
};

class Number : public Referencing<Number> {
public:
  static Number* number(double value);
  static Number* number(int value) { return number(static_cast<double>(value)); }
  static Number* number(bool value) { return number(static_cast<double>(value)); }
  double doubleValue() const { return value_; }

private:
  explicit Number(double value) : value_(value) {}
  double value_;
};

class Array : public Referencing<Array> {
public:
  static Array* array(const Object* const* objects, UInteger count);
  static Array* alloc() { return new Array; }
  Array* init(const Object* const* objects, UInteger count);
  UInteger count() const { return objects_.size(); }
  /// Null past the end.
  template <class T = Object> T* object(UInteger index) const {
    return index < objects_.size() ? static_cast<T*>(objects_[index]) : nullptr;
  }

private:
  Array() = default;
  ~Array() override;
  std::vector<Object*> objects_;
};

class Dictionary : public Referencing<Dictionary> {
public:
  static Dictionary* dictionary(const Object* value, const Object* key) { return dictionary(&value, &key, 1); }
  static Dictionary* dictionary(const Object* const* values, const Object* const* keys, UInteger count);
  UInteger count() const { return keys_->count(); }
  const Array* allKeys() const { return keys_.get(); }
  const Array* allValues() const { return values_.get(); }

private:
  Dictionary() = default;
  SharedPtr<Array> keys_, values_;
};

class Error : public Referencing<Error> {
public:
  static Error* error(String* domain, Integer code, String* description);
  Integer code() const { return code_; }
  String* domain() const { return domain_.get(); }
  String* localizedDescription() const { return description_.get(); }

private:
  Error() = default;
  Integer code_ = 0;
  SharedPtr<String> domain_, description_;
};

class URL : public Referencing<URL> {
public:
  static URL* fileURLWithPath(const String* path);
  const char* fileSystemRepresentation() const { return path_.c_str(); }

private:
  URL() = default;
  std::string path_;
};

}  // namespace NS

/// An object whose content only the implementation sees.
template <class T> class Opaque : public NS::Referencing<T> {
public:
  explicit Opaque(std::shared_ptr<State<T>> state) : state_(std::move(state)) {}
  State<T>& state() const { return *state_; }
  const std::shared_ptr<State<T>>& shared() const { return state_; }

private:
  std::shared_ptr<State<T>> state_;
};

}  // namespace vortex::metal
