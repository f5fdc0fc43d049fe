/* Kernels over the memory of the host. */

/* A chain of pointers: no load can begin before the previous load has delivered its address. */
void *chase(void *from, long steps)
{
    void **place = from;
    for (long i = 0; i < steps; i++)
        place = *place;
    return place;
}

/* The four kernels of STREAM over n doubles from each of the addresses a, b and c. */
#define KERNEL(name, statement)                                                            \
    void name(double *restrict a, double *restrict b, double *restrict c, double scalar,   \
              long n)                                                                      \
    {                                                                                      \
        for (long i = 0; i < n; i++)                                                       \
            statement;                                                                     \
    }

KERNEL(copy, c[i] = a[i])
KERNEL(scale, b[i] = scalar * c[i])
KERNEL(add, c[i] = a[i] + b[i])
KERNEL(triad, a[i] = b[i] + scalar * c[i])
