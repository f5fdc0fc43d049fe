/* A chain of pointers: no load can begin before the one before it has brought its address. */

void *chase(void *from, long steps)
{
    void **place = from;
    for (long i = 0; i < steps; i++)
        place = *place;
    return place;
}
